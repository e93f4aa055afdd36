// The three outputs of BGE-M3 equal those of FlagEmbedding (tools/goldens/make_bge_m3.py).

#include <map>
#include <set>

#include "checkpoint/module_files.h"
#include "embed/vector_kind.h"
#include "fovea/infer/retrieval.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

class BgeM3 : public testing::Test {
 protected:
  // [texts, V]
  static Tensor whole(const SparseVectors& vectors) {
    const Tensor rows = zeros({vectors.count, vectors.width});
    for (size_t i = 0; i + 1 < vectors.starts.size(); ++i)
      for (int64_t at = vectors.starts[i]; at < vectors.starts[i + 1]; ++at)
        rows.data_as<float>()[static_cast<int64_t>(i) * vectors.width +
                              vectors.indices[static_cast<size_t>(at)]] =
            vectors.values[static_cast<size_t>(at)];
    return rows;
  }
  GoldenFolder folder_{"bge_m3"};
};

TEST_F(BgeM3, HasDenseVectorsByDefault) {
  EXPECT_EQ(vector_kind(folder_.path()), VectorKind::dense);
  const Embeddings found = Embedder::open(folder_.path()).embed(folder_.texts());
  EXPECT_LT(largest_difference(tensor_of(found.values, {found.count, found.width}),
                               folder_.expected("dense")),
            1e-5);
}

TEST_F(BgeM3, HasTheWeightsOfTokens) {
  const SparseEmbedder model = SparseEmbedder::open(folder_.path());
  const SparseVectors found = model.embed(folder_.texts());
  EXPECT_LT(largest_difference(whole(found), folder_.expected("sparse")), 1e-5);
  EXPECT_GT(found.indices.size(), 8u);
  EXPECT_EQ(found.starts[3] - found.starts[2], 0) << "the text is empty";
  EXPECT_EQ(model.similarity_name(), "dot");
  const std::set<int32_t> present(found.indices.begin(), found.indices.end());
  for (const int32_t special : {0, 1, 2, 3}) EXPECT_FALSE(present.contains(special)) << special;
  const SparseVectors largest = model.embed(folder_.texts(), TextRole::document, {}, 2);
  EXPECT_LE(largest.starts[1], 2);
}

TEST_F(BgeM3, HasVectorsOfTokensButTheFirst) {
  const MultiVectorEmbedder model = MultiVectorEmbedder::open(folder_.path());
  const auto texts = folder_.texts();
  const MultiVectors found = model.embed(texts);
  EXPECT_EQ(found.width, 8);
  EXPECT_LT(largest_difference(tensor_of(found.values, {found.starts.back(), found.width}),
                               folder_.expected("tokens")),
            1e-5);
  EXPECT_TRUE(model.averages());
  const std::vector<float> scores = model.score(texts[0], texts);
  const Tensor expected = folder_.expected("scores.tokens");
  for (size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(scores[i], expected.data_as<float>()[i], 1e-5) << i;
}

TEST_F(BgeM3, CopiesItsHeads) {
  const TemporaryFolder copy;
  model::copy_modules(folder_.path(), copy.path(), 16);
  for (const char* name : {"sparse_linear.pt", "colbert_linear.pt"})
    EXPECT_EQ(read_file(copy / name), read_file(folder_ / name));
  // Heads as safetensors, which take precedence.
  const model::TokenHead head = model::read_token_head(folder_.path(), model::kSparseHead, 16, 1);
  const std::map<std::string, Tensor> tensors = {{"bias", head.bias}, {"weight", head.weight}};
  write_file_atomically(folder_ / "sparse_linear.safetensors", SafeTensorsImage(tensors).pieces());
  std::filesystem::remove(folder_ / "sparse_linear.pt");
  EXPECT_LT(largest_difference(whole(SparseEmbedder::open(folder_.path()).embed(folder_.texts())),
                               folder_.expected("sparse")),
            1e-5);
}

TEST_F(BgeM3, RefusesHeadsThatDoNotFit) {
  std::filesystem::copy_file(folder_ / "colbert_linear.pt", folder_ / "sparse_linear.pt",
                             std::filesystem::copy_options::overwrite_existing);
  expect_error(ErrorKind::BadFile,
               {"sparse_linear.pt: weight is [8, 16] and bias [8]; expected [1, 16]"},
               [&] { SparseEmbedder::open(folder_.path()); });
  write_file_atomically(folder_ / "colbert_linear.pt", "PK");
  expect_error(ErrorKind::BadFile, {"colbert_linear.pt: has no directory at its end"},
               [&] { MultiVectorEmbedder::open(folder_.path()); });
}

}  // namespace
}  // namespace fovea::infer
