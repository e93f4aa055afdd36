// Vectors of tokens and their scores equal those of sentence-transformers, which also reads the
// files of PyLate.

#include "embed/multi_vector_model.h"
#include "embed/vector_kind.h"

#include "fovea/infer/retrieval.h"
#include "fovea/model/convert.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"

namespace fovea::infer {
namespace {

class MultiVectorTest : public testing::Test {
 protected:
  MultiVectorEmbedder open() const { return MultiVectorEmbedder::open(folder_.path()); }
  void refused(ErrorKind kind, std::initializer_list<std::string> texts) const {
    expect_error(kind, texts, [&] { open(); });
  }
  // Compares all rows of the texts, and their numbers.
  static void compare(const GoldenFolder& folder, const MultiVectors& vectors,
                      const std::string& name, const std::string& variant = "") {
    const Tensor counts = folder.expected(name + ".counts" + variant);
    ASSERT_EQ(counts.size(), vectors.count);
    for (int64_t i = 0; i < vectors.count; ++i)
      EXPECT_EQ(vectors.rows(i).shape[0], static_cast<int64_t>(counts.data_as<float>()[i])) << i;
    const Tensor rows = tensor_of(vectors.values, {vectors.starts.back(), vectors.width});
    EXPECT_LT(largest_difference(rows, folder.expected(name + variant)), 1e-5) << name;
  }
  static void compare_all(const GoldenFolder& folder) {
    EXPECT_EQ(vector_kind(folder.path()), VectorKind::multiple);
    const auto model = MultiVectorEmbedder::open(folder.path());
    const auto texts = folder.texts();
    compare(folder, model.embed(texts), "documents");
    compare(folder, model.embed(texts, TextRole::query), "queries");
    const std::vector<float> scores = model.score(texts[0], texts);
    EXPECT_LT(
        largest_difference(tensor_of(scores, {std::ssize(scores)}), folder.expected("scores")),
        1e-4);
  }
  GoldenFolder folder_{"multi_vector_model"};
};

TEST_F(MultiVectorTest, MatchesTheReference) { compare_all(folder_); }

TEST_F(MultiVectorTest, ReadsTheFilesOfPyLate) { compare_all(GoldenFolder("pylate_model")); }

TEST_F(MultiVectorTest, ReadsTheOriginalColbert) {
  std::map<std::string, Tensor> tensors;
  const SafeTensors file(folder_ / "model.safetensors");
  for (const StoredTensor& stored : file.stored())
    tensors["bert." + stored.name] = copy(file.tensor(stored.name));
  const SafeTensors dense(folder_ / "1_Dense/model.safetensors");
  tensors["linear.weight"] = copy(dense.tensor("linear.weight"));
  write_safetensors(folder_ / "model.safetensors", tensors);
  for (const char* name :
       {"modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"})
    std::filesystem::remove(folder_ / name);
  folder_.set("config.json", "architectures", {"HF_ColBERT"});
  folder_.write("artifact.metadata", {{"query_maxlen", 10}, {"doc_maxlen", 12}});
  compare_all(folder_);
  expect_error(ErrorKind::Unsupported, {"projection"},
               [&] { model::convert_model(folder_.path(), folder_ / "converted", {}); });
  folder_.write("artifact.metadata", {{"query_maxlen", 0}});
  refused(ErrorKind::BadFile, {"artifact.metadata", "query_maxlen"});
  folder_.write("artifact.metadata", nlohmann::json::object());
  refused(ErrorKind::BadFile, {"32", "20"});  // the default of queries exceeds the context
  tensors["linear.weight"] = zeros({8, 15});
  write_safetensors(folder_ / "model.safetensors", tensors);
  folder_.write("artifact.metadata", {{"query_maxlen", 10}});
  refused(ErrorKind::BadFile, {"linear.weight", "[8, 15]", "16"});
}

TEST_F(MultiVectorTest, ExtendsQueriesToAMinimum) {
  folder_.set("sentence_bert_config.json", "query_expansion",
              {{"strategy", "min"}, {"attend", true}, {"length", 9}});
  compare(folder_, open().embed(folder_.texts(), TextRole::query), "queries", ".min");
}

TEST_F(MultiVectorTest, GivesTheSameBitsInAnyBatch) {
  const MultiVectorEmbedder model = open();
  const auto texts = folder_.texts();
  for (const TextRole role : {TextRole::document, TextRole::query}) {
    const MultiVectors together = model.embed(texts, role);
    EmbedOptions small;
    small.batch_tokens = 1;
    EXPECT_EQ(model.embed(texts, role, small).values, together.values);
    std::vector<float> alone;
    for (const std::string& text : texts)
      for (const float x : model.embed({text}, role).values) alone.push_back(x);
    EXPECT_EQ(alone, together.values);
  }
}

TEST_F(MultiVectorTest, SumsTheLargestProducts) {
  const MultiVectorEmbedder model = open();
  const std::vector<float> query = {1, 0, 0, 2}, text = {3, 1, 1, 4, -1, -1};
  const ArrayView q{query.data(), {2, 2}, DType::f32}, t{text.data(), {3, 2}, DType::f32};
  EXPECT_EQ(model.similarity(q, t), 3 + 8);
  EXPECT_EQ(model.similarity(q, {text.data(), {0, 2}, DType::f32}), 0);
  expect_error(ErrorKind::InvalidArgument, {"2", "3"},
               [&] { model.similarity(q, {text.data(), {2, 3}, DType::f32}); });
  folder_.set("config_sentence_transformers.json", "similarity_fn_name", "meanmaxsim");
  EXPECT_EQ(open().similarity(q, t), 5.5f);
}

TEST_F(MultiVectorTest, RefusesInvalidFiles) {
  const std::string settings = "sentence_bert_config.json", mask = "2_MultiVectorMask/config.json";
  folder_.set(settings, "query_expansion", {{"strategy", "all"}, {"length", 9}});
  refused(ErrorKind::Unsupported, {settings, "all", "fixed or min"});
  folder_.set(settings, "query_expansion", {{"strategy", "fixed"}});
  refused(ErrorKind::BadFile, {settings, "length"});
  folder_.set(settings, "query_expansion", {{"strategy", "fixed"}, {"length", 21}});
  refused(ErrorKind::BadFile, {"21", "20"});
  folder_.set(settings, "query_expansion",
              {{"strategy", "fixed"}, {"length", 9}, {"token", "nonesuch"}});
  refused(ErrorKind::BadFile, {"expansion"});
  folder_.set(settings, "query_expansion", nullptr);
  folder_.set(settings, "document_length", 0);
  refused(ErrorKind::BadFile, {settings, "document_length"});
  folder_.set(settings, "document_length", nullptr);
  folder_.set(mask, "skiplist_words", {1});
  refused(ErrorKind::BadFile, {mask, "skiplist_words"});
  folder_.set(mask, "skiplist_words", nullptr);
  folder_.set(mask, "keep_only_token_ids", {1});
  refused(ErrorKind::Unsupported, {mask, "keep_only_token_ids"});
  folder_.set(mask, "keep_only_token_ids", nullptr);
  EXPECT_EQ(open().embed({"fox ?"}).starts.back(), 5);
  folder_.set("1_Dense/config.json", "in_features", 15);
  refused(ErrorKind::BadFile, {"in_features", "15", "16"});
  folder_.set("1_Dense/config.json", "module_input_name", "sentence_embedding");
  refused(ErrorKind::Unsupported, {"module_input_name"});
  nlohmann::json modules = folder_.read("modules.json");
  modules[1]["type"] = "x.HierarchicalTokenPooling";
  folder_.write("modules.json", modules);
  refused(ErrorKind::Unsupported, {"HierarchicalTokenPooling"});
}

}  // namespace
}  // namespace fovea::infer
