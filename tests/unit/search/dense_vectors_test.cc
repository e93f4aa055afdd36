#include "search/dense_vectors.h"

#include <cmath>

#include "base/threads.h"
#include "fovea/core/random.h"
#include "kernels/isa.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::infer {
namespace {

using FloatRows = std::vector<std::vector<float>>;

FloatRows random_unit_rows(int64_t count, int64_t width, uint64_t seed) {
  Random random(seed, Stream::init);
  FloatRows rows(static_cast<size_t>(count), std::vector<float>(static_cast<size_t>(width)));
  for (auto& row : rows) {
    double squares = 0;
    for (float& x : row) x = random.normal(), squares += double{x} * x;
    for (float& x : row) x = static_cast<float>(x / std::sqrt(squares));
  }
  return rows;
}

DenseVectors encoded(const FloatRows& rows, VectorPrecision precision) {
  DenseVectors vectors(std::ssize(rows), std::ssize(rows[0]), precision);
  for (size_t i = 0; i < rows.size(); ++i) vectors.set(static_cast<int64_t>(i), rows[i].data());
  return vectors;
}

std::vector<int32_t> ascending(int64_t count, int32_t first = 0) {
  std::vector<int32_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(first + static_cast<int32_t>(i));
  return numbers;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

constexpr VectorPrecision kAll[] = {VectorPrecision::float32, VectorPrecision::int8,
                                    VectorPrecision::binary};

TEST(DenseVectors, RoundOnlyAsMuchAsTheirPrecision) {
  const FloatRows rows = random_unit_rows(20, 100, 1);
  for (const VectorPrecision precision : kAll) {
    const DenseVectors vectors = encoded(rows, precision);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto vector = vectors.vector(static_cast<int64_t>(i));
      float most = 0;
      for (const float x : rows[i]) most = std::max(most, std::abs(x));
      for (size_t c = 0; c < vector.size(); ++c)
        EXPECT_NEAR(vector[c], rows[i][c],
                    precision == VectorPrecision::float32 ? 0 : most / 127 * 0.501);
    }
    DenseVectors copies(2, 100, precision);
    copies.copy(1, vectors, 7);
    EXPECT_EQ(copies.vector(1), vectors.vector(7));
    EXPECT_EQ(copies.vector(0), std::vector<float>(100));
  }
}

TEST(DenseVectors, RoundTripAndRefuseInvalidFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "vectors.safetensors";
  const FloatRows rows = random_unit_rows(3, 70, 2);
  for (const VectorPrecision precision : kAll) {
    const auto whole = encoded(rows, precision).tensors();
    const auto open = [&](const std::map<std::string, Tensor>& tensors, int64_t width = 70) {
      write_safetensors(path, tensors);
      return DenseVectors(SafeTensors(path), path, 3, width, precision);
    };
    EXPECT_EQ(open(whole).vector(2), encoded(rows, precision).vector(2));
    expect_error(ErrorKind::BadFile, {path}, [&] { open(whole, 200); });
    expect_error(ErrorKind::BadFile, {path}, [&] { open(whole, int64_t{1} << 40); });
    for (const auto& [name, tensor] : whole) {
      auto tensors = whole;
      tensors[name] = zeros({2}, tensor.dtype());
      expect_error(ErrorKind::BadFile, {path, name.c_str()}, [&] { open(tensors); });
      tensors[name] = zeros(tensor.shape(), DType::i32);
      expect_error(ErrorKind::BadFile, {path, name.c_str()}, [&] { open(tensors); });
      tensors.erase(name);
      expect_error(ErrorKind::BadFile, {path, name.c_str()}, [&] { open(tensors); });
      if (tensor.dtype() != DType::f32) continue;
      const Tensor infinite = copy(tensor);
      infinite.data_as<float>()[1] = INFINITY;
      tensors[name] = infinite;
      expect_error(ErrorKind::BadFile, {path, "finite"}, [&] { open(tensors); });
    }
  }
}

TEST(DenseSearch, FindsTheNearestExactly) {
  const FloatRows rows = random_unit_rows(3000, 48, 3);
  const auto numbers = ascending(3000);
  for (const Similarity similarity : {Similarity::cosine, Similarity::euclidean}) {
    const DenseVectors vectors = encoded(rows, VectorPrecision::float32);
    const std::vector<float>& query = rows[17];
    std::vector<ScoredPassage> wanted;
    for (const auto& row : rows) {
      double score = dot(query, row);
      if (similarity == Similarity::euclidean) {
        score = 0;
        for (size_t c = 0; c < row.size(); ++c) score += std::pow(double{row[c]} - query[c], 2);
        score = -std::sqrt(score);
      }
      wanted.push_back({std::ssize(wanted), static_cast<float>(score)});
    }
    wanted = best_of(wanted, 20);
    const DenseSearch search(query, similarity, {{&vectors, numbers}});
    const auto found = search.best(20);
    ASSERT_EQ(found.size(), 20u);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].number, wanted[i].number);
      EXPECT_NEAR(found[i].score, wanted[i].score, 1e-5);
      EXPECT_EQ(found[i].score, search.similarity(vectors, found[i].number));
    }
    EXPECT_EQ(search.best(100'000).size(), 3000u);
    EXPECT_TRUE(search.best(0).empty());
  }
}

// Each query is near one vector, and almost equally far from the others: bytes find most of the
// next nearest too.
TEST(DenseSearch, ShortVectorsFindTheNearest) {
  const FloatRows rows = random_unit_rows(2000, 256, 4), noise = random_unit_rows(20, 256, 5);
  const auto numbers = ascending(2000);
  const DenseVectors exact = encoded(rows, VectorPrecision::float32);
  for (const VectorPrecision precision : {VectorPrecision::int8, VectorPrecision::binary}) {
    const DenseVectors vectors = encoded(rows, precision);
    int common = 0;
    for (size_t i = 0; i < noise.size(); ++i) {
      std::vector<float> query(256);
      for (size_t c = 0; c < query.size(); ++c)
        query[c] = 0.6f * rows[i * 90][c] + 0.8f * noise[i][c];
      const auto wanted = DenseSearch(query, Similarity::cosine, {{&exact, numbers}}).best(10);
      const auto found = DenseSearch(query, Similarity::cosine, {{&vectors, numbers}}).best(10);
      EXPECT_EQ(found[0].number, static_cast<int64_t>(i * 90));
      for (const auto& [number, score] : found) {
        EXPECT_NEAR(score, dot(query, rows[static_cast<size_t>(number)]), 0.01);
        common += std::ranges::any_of(wanted, [&](const auto& w) { return w.number == number; });
      }
    }
    EXPECT_GT(common, precision == VectorPrecision::int8 ? 190 : 60);
  }
}

TEST(DenseSearch, DoesNotDependOnThreadsPartsOrInstructionSets) {
  const FloatRows rows = random_unit_rows(20'000, 65, 6);
  const std::vector<float> query = random_unit_rows(1, 65, 7)[0];
  auto numbers = ascending(20'000);
  for (size_t i = 0; i < numbers.size(); i += 3) numbers[i] = -1;  // not searched
  const FloatRows first(rows.begin(), rows.begin() + 7001), second(rows.begin() + 7001, rows.end());
  for (const VectorPrecision precision : kAll) {
    const DenseVectors whole = encoded(rows, precision), one = encoded(first, precision),
                       other = encoded(second, precision);
    const std::span<const int32_t> all(numbers);
    const auto check = [&](const std::vector<ScoredPassage>& wanted,
                           const std::vector<ScoredPassage>& found) {
      ASSERT_EQ(found.size(), wanted.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].number, wanted[i].number) << i;
        EXPECT_EQ(found[i].score, wanted[i].score) << i;
        EXPECT_NE(found[i].number % 3, 0);
      }
    };
    const auto in_whole = [&] {
      return DenseSearch(query, Similarity::cosine, {{&whole, all}}).best(50);
    };
    const auto wanted = in_whole();
    ASSERT_EQ(wanted.size(), 50u);
    check(wanted, DenseSearch(query, Similarity::cosine,
                              {{&one, all.subspan(0, 7001)}, {&other, all.subspan(7001)}})
                      .best(50));
    const int before = thread_count();
    for (const int threads : {1, 2, 5}) {
      set_threads(threads);
      check(wanted, in_whole());
    }
    set_threads(before);
    for (const std::string& isa : testable_isas()) {
      use_isa(isa);
      check(wanted, in_whole());
    }
    use_isa("auto");
  }
}

TEST(DenseSearch, OrdersNumbersThatOverflow) {
  const FloatRows rows = {{3e38f, 3e38f}, {-3e38f, 3e38f}, {1, 1}};
  const auto numbers = ascending(3);
  const DenseVectors vectors = encoded(rows, VectorPrecision::float32);
  const std::vector<float> query = {3e38f, 3e38f};
  const auto found = DenseSearch(query, Similarity::dot, {{&vectors, numbers}}).best(3);
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(std::isnan(found[i].score));
  expect_error(ErrorKind::InvalidArgument, {"3 elements", "expected 2"}, [&] {
    const std::vector<float> other(3);
    DenseSearch(other, Similarity::dot, {{&vectors, numbers}});
  });
}

}  // namespace
}  // namespace fovea::infer
