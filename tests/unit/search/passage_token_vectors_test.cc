// The vectors of the tokens of passages: sums of greatest products, and files.

#include "search/passage_token_vectors.h"

#include <algorithm>
#include <cmath>

#include "fovea/core/random.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

Tensor random_rows_of(int64_t rows, int64_t width, uint64_t seed) {
  const Tensor x = empty({rows, width});
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = random.uniform() - 0.5f;
  return x;
}

TEST(PassageTokenVectors, SumTheGreatestProducts) {
  constexpr int64_t kWidth = 24, kQuery = 5;
  std::vector<Tensor> passages;
  // More than the vectors of one product; the third and the last passage have no tokens.
  for (const int64_t tokens : {3, 4200, 0, 1, 5000, 0})
    passages.push_back(random_rows_of(tokens, kWidth, passages.size()));
  const Tensor query = random_rows_of(kQuery, kWidth, 100);
  const PassageTokenVectors vectors(passages, kWidth);
  const std::vector<float> sums = vectors.sums(query);
  ASSERT_EQ(sums.size(), passages.size());
  for (size_t i = 0; i < passages.size(); ++i) {
    double wanted = 0;
    for (int64_t q = 0; q < kQuery && passages[i].dim(0) > 0; ++q) {
      double most = -INFINITY;
      for (int64_t t = 0; t < passages[i].dim(0); ++t) {
        double dot = 0;
        for (int64_t c = 0; c < kWidth; ++c)
          dot += double{query.data_as<float>()[q * kWidth + c]} *
                 double{passages[i].data_as<float>()[t * kWidth + c]};
        most = std::max(most, dot);
      }
      wanted += most;
    }
    EXPECT_NEAR(sums[i], wanted, 1e-5) << "passage " << i;
    EXPECT_EQ(vectors.rows(static_cast<int64_t>(i)).dim(0), passages[i].dim(0));
  }
  EXPECT_EQ(vectors.sums(zeros({0, kWidth})), std::vector<float>(passages.size()));
}

TEST(PassageTokenVectors, RoundTripAndRefuseInvalidFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "tokens.safetensors";
  const auto whole =
      PassageTokenVectors(
          {random_rows_of(2, 4, 1), random_rows_of(0, 4, 2), random_rows_of(3, 4, 3)}, 4)
          .tensors();
  const auto open = [&](const std::map<std::string, Tensor>& tensors) {
    write_safetensors(path, tensors);
    return PassageTokenVectors(SafeTensors(path), path, 4, 3);
  };
  EXPECT_EQ(open(whole).rows(2).data_as<float>()[5], random_rows_of(3, 4, 3).data_as<float>()[5]);
  const auto refused = [&](const char* name, const Tensor& value) {
    auto tensors = whole;
    tensors[name] = value;
    expect_error(ErrorKind::BadFile, {path, "4 elements", "3 passages"}, [&] { open(tensors); });
  };
  refused("starts", zeros({3}, DType::i64));
  refused("starts", zeros({4}, DType::i32));
  const Tensor starts = zeros({4}, DType::i64);
  starts.data_as<int64_t>()[1] = 3;
  starts.data_as<int64_t>()[3] = 5;
  refused("starts", starts);  // descends
  refused("values", zeros({4, 4}));
  refused("values", zeros({5, 3}));
  refused("values", full({5, 4}, NAN));
}

}  // namespace
}  // namespace fovea::infer
