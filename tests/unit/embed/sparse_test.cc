// Sparse vectors equal those of sentence-transformers.

#include <limits>

#include "embed/sparse_model.h"
#include "embed/vector_kind.h"
#include "fovea/infer/retrieval.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

Tensor dense_rows(const SparseVectors& vectors) {
  const Tensor rows = zeros({vectors.count, vectors.width});
  for (size_t i = 0; i + 1 < vectors.starts.size(); ++i)
    for (auto at = static_cast<size_t>(vectors.starts[i]);
         at < static_cast<size_t>(vectors.starts[i + 1]); ++at)
      rows.data_as<float>()[static_cast<int64_t>(i) * vectors.width + vectors.indices[at]] =
          vectors.values[at];
  return rows;
}

class SparseTest : public testing::Test {
 protected:
  SparseEmbedder open() const { return SparseEmbedder::open(folder_.path()); }
  void close(const SparseVectors& vectors, const std::string& name) const {
    EXPECT_LT(largest_difference(dense_rows(vectors), folder_.expected(name)), 1e-5) << name;
  }
  GoldenFolder folder_{"sparse_model"};
};

TEST_F(SparseTest, MatchesTheReference) {
  const SparseEmbedder model = open();
  EXPECT_EQ(model.width(), 25);
  EXPECT_EQ(model.max_tokens(), 12);
  EXPECT_EQ(model.similarity_name(), "dot");
  EXPECT_EQ(vector_kind(folder_.path()), VectorKind::sparse);
  const auto texts = folder_.texts();
  const SparseVectors vectors = model.embed(texts);
  close(vectors, "vectors");
  EXPECT_EQ(vectors.tokens[0], 7);
  EXPECT_GT(vectors.cut[5], 0);
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_TRUE(std::is_sorted(vectors.indices.begin() + vectors.starts[i],
                               vectors.indices.begin() + vectors.starts[i + 1]));
  close(model.embed(texts, TextRole::query), "query");
  close(model.embed(texts, TextRole::document, {}, 3), "top");
  folder_.set("config_sentence_transformers.json", "max_active_dims", 3);
  close(open().embed(texts), "top");
}

TEST_F(SparseTest, PoolsBySumAndTwoLogarithms) {
  folder_.set("1_SpladePooling/config.json", "pooling_strategy", "sum");
  close(open().embed(folder_.texts()), "sum");
  folder_.set("1_SpladePooling/config.json", "pooling_strategy", "max");
  folder_.set("1_SpladePooling/config.json", "activation_function", "log1p_relu");
  close(open().embed(folder_.texts()), "log1p");
}

TEST_F(SparseTest, ReadsALanguageModelWithoutModules) {
  std::filesystem::remove(folder_ / "modules.json");
  EXPECT_EQ(vector_kind(folder_.path()), VectorKind::dense);
  close(open().embed(folder_.texts()), "vectors");
}

TEST_F(SparseTest, GivesTheSameBitsInAnyBatch) {
  const SparseEmbedder model = open();
  const auto texts = folder_.texts();
  const SparseVectors together = model.embed(texts);
  for (const int64_t most : {1, 13, 40}) {
    EmbedOptions options;
    options.batch_tokens = most;
    const SparseVectors other = model.embed(texts, TextRole::document, options);
    EXPECT_EQ(other.indices, together.indices);
    EXPECT_EQ(other.values, together.values);
  }
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(model.embed({texts[i]}).values,
              std::vector<float>(together.values.begin() + together.starts[i],
                                 together.values.begin() + together.starts[i + 1]));
}

TEST_F(SparseTest, RoutesQueriesToATable) {
  const GoldenFolder folder("sparse_router");
  EXPECT_EQ(vector_kind(folder.path()), VectorKind::sparse);
  const SparseEmbedder model = SparseEmbedder::open(folder.path());
  const auto rows = [&](TextRole role) { return dense_rows(model.embed(folder.texts(), role)); };
  EXPECT_LT(largest_difference(rows(TextRole::document), folder.expected("documents")), 1e-5);
  EXPECT_EQ(to_floats(rows(TextRole::query)), to_floats(folder.expected("queries")));
  const uint64_t before = model.fingerprint();
  const std::string file = folder / "query_0_SparseStaticEmbedding/model.safetensors";
  write_safetensors(file, {{"weight", full({25}, 2.0)}});
  const SparseEmbedder other = SparseEmbedder::open(folder.path());
  EXPECT_NE(other.fingerprint(), before);
  EXPECT_EQ(other.embed({"the fox the fox"}, TextRole::query).values, (std::vector<float>{2, 2}));
}

TEST_F(SparseTest, RefusesInvalidFiles) {
  const auto refused = [&](ErrorKind kind, std::initializer_list<std::string> texts) {
    expect_error(kind, texts, [&] { open(); });
  };
  const std::string pooling = "1_SpladePooling/config.json";
  folder_.set(pooling, "pooling_strategy", "mean");
  refused(ErrorKind::Unsupported, {pooling, "pooling_strategy", "mean", "max or sum"});
  folder_.set(pooling, "pooling_strategy", 7);
  refused(ErrorKind::BadFile, {pooling, "pooling_strategy"});
  folder_.write(pooling, nlohmann::json::array());
  refused(ErrorKind::BadFile, {pooling, "not an object"});
  folder_.write(pooling, {{"activation_function", "gelu"}});
  refused(ErrorKind::Unsupported, {pooling, "gelu"});
  folder_.write(pooling, nlohmann::json::object());
  folder_.set("config_sentence_transformers.json", "max_active_dims", -1);
  refused(ErrorKind::BadFile, {"max_active_dims"});
  folder_.set("config_sentence_transformers.json", "max_active_dims", nullptr);
  const GoldenFolder plain("multi_vector_model");
  std::filesystem::remove(plain / "modules.json");
  expect_error(ErrorKind::Unsupported, {plain.path(), "language-model head"},
               [&] { SparseEmbedder::open(plain.path()); });
  nlohmann::json modules = folder_.read("modules.json");
  modules[1]["type"] = "x.SparseAutoEncoder";
  folder_.write("modules.json", modules);
  refused(ErrorKind::Unsupported, {"modules.json", "SparseAutoEncoder"});
  expect_error(ErrorKind::Unsupported, {"sentence_model", "Pooling"},
               [] { SparseEmbedder::open("tests/goldens/sentence_model"); });
}

TEST_F(SparseTest, RefusesInvalidRouters) {
  const GoldenFolder folder("sparse_router");
  const auto refused = [&](ErrorKind kind, std::initializer_list<std::string> texts) {
    expect_error(kind, texts, [&] { SparseEmbedder::open(folder.path()); });
  };
  const nlohmann::json whole = folder.read("router_config.json");
  const std::string table = folder / "query_0_SparseStaticEmbedding/model.safetensors";
  write_safetensors(table, {{"weight", full({24}, 1.0)}});
  refused(ErrorKind::BadFile, {table, "[24]", "[25]"});
  write_safetensors(table, {{"weight", full({26}, 1.0)}});
  refused(ErrorKind::BadFile, {"26", "25"});
  write_safetensors(table, {{"weight", full({25}, std::numeric_limits<double>::infinity())}});
  refused(ErrorKind::BadFile, {"not finite"});
  folder.set("router_config.json", "structure", {{"image", nlohmann::json::array()}});
  refused(ErrorKind::Unsupported, {"image"});
  folder.set("router_config.json", "structure", {{"query", {"none"}}});
  refused(ErrorKind::BadFile, {"router_config.json", "none"});
  folder.set("router_config.json", "structure", {{"query", {"../up"}}});
  folder.set("router_config.json", "types", {{"../up", "x.SparseStaticEmbedding"}});
  refused(ErrorKind::BadFile, {"leads out"});
  folder.set("router_config.json", "types", 1);
  refused(ErrorKind::BadFile, {"types"});
}

TEST_F(SparseTest, RefusesInvalidOptions) {
  const SparseEmbedder model = open();
  EmbedOptions options;
  options.dimensions = 4;
  const auto refused = [&](const std::string& text) {
    expect_error(ErrorKind::InvalidArgument, {text},
                 [&] { model.embed({"fox"}, TextRole::document, options); });
  };
  refused("dimensions");
  options = {};
  options.normalise = true;
  refused("normalise");
  options = {};
  options.prompt_name = "none";
  refused("none");
  options = {};
  options.truncate = false;
  expect_error(ErrorKind::InvalidArgument, {"text 6", "12"},
               [&] { model.embed(folder_.texts(), TextRole::document, options); });
}

TEST(KeepLargest, PrefersSmallerIndicesOfEqualValues) {
  SparseRow row = {{1, 4, 6, 9}, {2, 3, 2, 2}};
  keep_largest(row, 3);
  EXPECT_EQ(row.indices, (std::vector<int32_t>{1, 4, 6}));
  EXPECT_EQ(row.values, (std::vector<float>{2, 3, 2}));
  keep_largest(row, 0);
  EXPECT_EQ(row.indices.size(), 3u);
}

}  // namespace
}  // namespace fovea::infer
