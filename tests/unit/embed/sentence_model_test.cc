// A sentence-transformers directory gives the same vectors as sentence-transformers, and each
// module applies the settings in its files.

#include "embed/sentence_model.h"

#include <cmath>
#include <limits>

#include "embed/batching.h"
#include "embed/losses.h"
#include "kernels/isa.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/second_device.h"

namespace fovea::infer {
namespace {

constexpr double kClose = 1e-5;

Tensor vectors(const SentenceModel& model, const std::vector<std::string>& texts,
               const std::string& prompt = "", int64_t most = 1024) {
  const auto tokenized =
      tokenize_all(texts.size(), [&](size_t i) { return model.format.text(prompt + texts[i]); });
  const int64_t leading =
      prompt.empty()
          ? 0
          : static_cast<int64_t>(model.format.text(prompt).ids.size()) - model.format.trailing();
  return in_batches(tokenized, model.modules.width, most, [&](const TokenBatch& batch) {
    return model.embed(batch, leading, DType::f32);
  });
}

class SentenceModelTest : public testing::Test {
 protected:
  SentenceModel open() const { return SentenceModel::open(folder_.path(), model::Weights::mapped); }
  Tensor now() const { return vectors(open(), folder_.texts()); }

  // Keeps only the Transformer and a pooling module.
  void keep_pooling(const nlohmann::json& config) const {
    nlohmann::json modules = folder_.read("modules.json");
    modules.erase(modules.begin() + 2, modules.end());
    folder_.write("modules.json", modules);
    folder_.write("1_Pooling/config.json", config);
  }
  void refused(ErrorKind kind, std::initializer_list<std::string> texts) const {
    expect_error(kind, texts, [&] { open(); });
  }
  GoldenFolder folder_{"sentence_model"};
};

TEST_F(SentenceModelTest, MatchesTheReference) {
  const SentenceModel model = open();
  EXPECT_EQ(model.modules.width, 10);
  EXPECT_EQ(model.format.most(), 12);
  EXPECT_EQ(model.modules.prompts.at("query"), "query : ");
  EXPECT_TRUE(model.warnings.empty());
  const auto texts = folder_.texts();
  EXPECT_LT(largest_difference(vectors(model, texts), folder_.expected("vectors")), kClose);
  EXPECT_LT(largest_difference(vectors(model, texts, "query : "), folder_.expected("query")),
            kClose);
}

TEST_F(SentenceModelTest, GivesTheSameBitsInAnyBatch) {
  const SentenceModel model = open();
  const auto texts = folder_.texts();
  const Tensor together = vectors(model, texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    EXPECT_EQ(to_floats(vectors(model, {texts[i]})), to_floats(together.rows(row, row + 1))) << i;
  }
  for (const int64_t most : {1, 13, 30})
    EXPECT_EQ(to_floats(vectors(model, texts, "", most)), to_floats(together)) << most;
}

TEST_F(SentenceModelTest, GivesTheBitsOfTheReferenceOnASecondDevice) {
  use_isa("reference");
  const SentenceModel host = open();
  SentenceModel other = open();
  other.move_to(test::second_device());
  const auto texts = folder_.texts();
  EXPECT_EQ(to_floats(vectors(other, texts)), to_floats(vectors(host, texts)));
  EXPECT_EQ(to_floats(vectors(other, texts, "query : ")),
            to_floats(vectors(host, texts, "query : ")));
  use_isa("auto");
}

// Enough texts for batches of each thread.
TEST_F(SentenceModelTest, GivesTheSameBitsInBatchesOfEachThread) {
  const SentenceModel model = open();
  const auto texts = folder_.texts();
  const std::vector<float> once = to_floats(vectors(model, texts));
  constexpr size_t kRepetitions = 400;
  std::vector<std::string> many;
  for (size_t i = 0; i < kRepetitions; ++i) many.insert(many.end(), texts.begin(), texts.end());
  const std::vector<float> all = to_floats(vectors(model, many, "", 0));
  ASSERT_EQ(all.size(), kRepetitions * once.size());
  for (size_t i = 0; i < kRepetitions; ++i)
    EXPECT_TRUE(std::equal(once.begin(), once.end(), all.begin() + std::ptrdiff_t(i * once.size())))
        << i;
}

TEST_F(SentenceModelTest, GivesTheSameVectorsWithPackedWeights) {
  const SentenceModel packed = SentenceModel::open(folder_.path(), model::Weights::packed);
  EXPECT_LT(largest_difference(vectors(packed, folder_.texts()), folder_.expected("vectors")),
            kClose);
}

// Bidirectional decoders, encoders of encoder-decoders, and decoders whose last token counts.
class EmbedderTest : public testing::TestWithParam<const char*> {
 protected:
  GoldenFolder folder_{std::string("embedders/") + GetParam()};
};

TEST_P(EmbedderTest, MatchesTheReference) {
  const SentenceModel model = SentenceModel::open(folder_.path(), model::Weights::mapped);
  EXPECT_TRUE(model.warnings.empty());
  const auto texts = folder_.texts();
  const std::string prompt = model.modules.prompts.at("query");
  EXPECT_LT(largest_difference(vectors(model, texts), folder_.expected("vectors")), kClose);
  EXPECT_LT(largest_difference(vectors(model, texts, prompt), folder_.expected("query")), kClose);
}

TEST_P(EmbedderTest, GivesTheSameBitsInAnyBatch) {
  const SentenceModel model = SentenceModel::open(folder_.path(), model::Weights::mapped);
  const auto texts = folder_.texts();
  const Tensor together = vectors(model, texts);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    EXPECT_EQ(to_floats(vectors(model, {texts[i]})), to_floats(together.rows(row, row + 1))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Embedders, EmbedderTest,
                         testing::Values("embedding_gemma", "sentence_t5", "qwen3_embedding"));

TEST_F(SentenceModelTest, IgnoresAMissingPooler) {
  auto tensors = std::map<std::string, Tensor>();
  const SafeTensors file(folder_ / "model.safetensors");
  for (const StoredTensor& stored : file.stored())
    if (!stored.name.starts_with("pooler.")) tensors[stored.name] = copy(file.tensor(stored.name));
  EXPECT_EQ(tensors.size() + 2, file.stored().size());
  write_safetensors(folder_ / "model.safetensors", tensors);
  EXPECT_LT(largest_difference(now(), folder_.expected("vectors")), kClose);
}

TEST_F(SentenceModelTest, ReadsBothSpellingsOfPooling) {
  const std::vector<std::pair<std::string, std::string>> names = {
      {"cls", "pooling_mode_cls_token"},
      {"max", "pooling_mode_max_tokens"},
      {"mean", "pooling_mode_mean_tokens"},
      {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
      {"weightedmean", "pooling_mode_weightedmean_tokens"},
      {"lasttoken", "pooling_mode_lasttoken"}};
  for (const auto& [name, key] : names) {
    keep_pooling({{"embedding_dimension", 16}, {"pooling_mode", name}});
    EXPECT_LT(largest_difference(now(), folder_.expected("pool." + name)), kClose) << name;
    nlohmann::json old = {{"word_embedding_dimension", 16}, {"pooling_mode_cls_token", false}};
    old[key] = true;
    keep_pooling(old);
    EXPECT_LT(largest_difference(now(), folder_.expected("pool." + name)), kClose) << key;
  }
}

TEST_F(SentenceModelTest, ConcatenatesSeveralPoolings) {
  keep_pooling({{"pooling_mode_lasttoken", true}, {"pooling_mode_max_tokens", true}});
  EXPECT_EQ(
      open().modules.pooling.modes,
      (std::vector{TokenPooling::max, TokenPooling::last}));  // the order of the keys has no effect
  EXPECT_EQ(open().modules.width, 32);
  keep_pooling({{"pooling_mode", {"lasttoken", "max"}}});
  EXPECT_EQ(open().modules.pooling.modes, (std::vector{TokenPooling::last, TokenPooling::max}));
  keep_pooling(nlohmann::json::object());
  EXPECT_EQ(open().modules.pooling.modes, std::vector{TokenPooling::mean});
}

TEST_F(SentenceModelTest, WeightsLayers) {
  keep_pooling({{"pooling_mode", "mean"}});
  nlohmann::json modules = folder_.read("modules.json");
  const nlohmann::json layers = {{"type", "x.WeightedLayerPooling"}, {"path", "layers"}};
  modules.insert(modules.begin() + 1, layers);
  folder_.write("modules.json", modules);
  make_directories(folder_ / "layers");
  folder_.write("layers/config.json", {{"layer_start", 1}, {"num_hidden_layers", 2}});
  write_safetensors(folder_ / "layers/model.safetensors",
                    {{"layer_weights", tensor_of({0.5, 2}, {2})}});
  EXPECT_LT(largest_difference(now(), folder_.expected("layers")), kClose);
  folder_.write("layers/config.json", {{"layer_start", 1}, {"num_hidden_layers", 3}});
  refused(ErrorKind::BadFile, {"layer_weights", "[2]", "[3]"});
  write_safetensors(folder_ / "layers/model.safetensors", {{"layer_weights", zeros({2})}});
  folder_.write("layers/config.json", {{"layer_start", 1}, {"num_hidden_layers", 2}});
  refused(ErrorKind::BadFile, {"layer_weights", "sum to 0"});
}

// sentence-transformers keeps the first elements of the finished vector, so that it no longer has
// unit length.
TEST_F(SentenceModelTest, KeepsTheFirstElements) {
  const Tensor whole = folder_.expected("vectors");
  folder_.set("config_sentence_transformers.json", "truncate_dim", 4);
  SentenceModel model = open();
  EXPECT_EQ(model.modules.width, 4);
  EXPECT_LT(largest_difference(vectors(model, folder_.texts()), first_columns(whole, 4)), kClose);
  keep_all_elements(model.modules);  // for training
  EXPECT_EQ(model.modules.width, 10);
  EXPECT_LT(largest_difference(vectors(model, folder_.texts()), whole), kClose);
  folder_.set("config_sentence_transformers.json", "truncate_dim", 10);
  EXPECT_EQ(open().modules.width, 10);
}

TEST_F(SentenceModelTest, SettingsAreKnownOrRefused) {
  folder_.set("config_sentence_transformers.json", "truncate", 4);
  refused(ErrorKind::Unsupported, {"config_sentence_transformers.json: truncate is not known"});
  folder_.set("config_sentence_transformers.json", "truncate", absent);
  folder_.set("1_Pooling/config.json", "temperature", 2);
  refused(ErrorKind::Unsupported, {"1_Pooling/config.json: temperature is not known and, as 2"});
  folder_.set("1_Pooling/config.json", "temperature", absent);
  folder_.set("4_Normalize/config.json", "module_input_name", "token_embeddings");
  refused(ErrorKind::Unsupported, {"4_Normalize/config.json: module_input_name"});
  folder_.set("4_Normalize/config.json", "module_input_name", absent);
  folder_.set("sentence_bert_config.json", "processing_kwargs", {{"text", {{"max_length", 4}}}});
  refused(ErrorKind::Unsupported, {"sentence_bert_config.json: processing_kwargs: text is not"});
}

TEST_F(SentenceModelTest, UsesTheMeanWithoutModulesAndWarns) {
  remove_tree(folder_ / "modules.json");
  const SentenceModel model = open();
  EXPECT_EQ(model.warnings.size(), 1u);
  EXPECT_NE(model.warnings[0].find("mean"), std::string::npos);
  EXPECT_LT(largest_difference(now(), folder_.expected("pool.mean")), kClose);
}

TEST_F(SentenceModelTest, ReadsTheMaximumLengthFromTheFirstFile) {
  folder_.write("sentence_bert_config.json", {{"max_seq_length", 7}, {"do_lower_case", true}});
  EXPECT_EQ(open().format.most(), 7);
  folder_.write("sentence_bert_config.json", {{"max_seq_length", nullptr}});
  EXPECT_EQ(open().format.most(), 12);
  folder_.set("tokenizer_config.json", "model_max_length", 1e30);
  EXPECT_EQ(open().format.most(), 20);
  folder_.write("sentence_bert_config.json", {{"max_seq_length", 2}});
  refused(ErrorKind::InvalidArgument, {"maximum length", "2 tokens"});
}

TEST_F(SentenceModelTest, NamesMissingAndUnknownParts) {
  remove_tree(folder_ / "1_Pooling/config.json");
  refused(ErrorKind::BadFile, {"1_Pooling/config.json"});
  folder_.write("1_Pooling/config.json", {{"pooling_mode", "median"}});
  refused(ErrorKind::BadFile, {"1_Pooling/config.json", "median", "weightedmean"});
  folder_.write("1_Pooling/config.json", {{"pooling_mode", 3}});
  refused(ErrorKind::BadFile, {"pooling_mode"});
  folder_.write("1_Pooling/config.json", {{"embedding_dimension", 17}});
  refused(ErrorKind::BadFile, {"embedding_dimension", "17", "16"});
  for (const char* type : {"x.CNN", "WordEmbeddings", "Pooling"}) {
    nlohmann::json modules = folder_.read("modules.json");
    modules[2]["type"] = type;
    folder_.write("modules.json", modules);
    folder_.write("1_Pooling/config.json", nlohmann::json::object());
    refused(ErrorKind::Unsupported,
            {"2_Dense", std::string(type).substr(std::string(type).rfind('.') + 1)});
  }
}

TEST_F(SentenceModelTest, RefusesAMismatchedDenseLayer) {
  folder_.set("2_Dense/config.json", "in_features", 31);
  refused(ErrorKind::BadFile, {"2_Dense/config.json", "31", "32"});
  folder_.set("2_Dense/config.json", "in_features", 32);
  folder_.set("2_Dense/config.json", "out_features", 11);
  refused(ErrorKind::BadFile, {"linear.weight", "[10, 32]", "[11, 32]"});
  folder_.set("2_Dense/config.json", "out_features", 1e12);
  refused(ErrorKind::BadFile, {"out_features"});
  folder_.set("2_Dense/config.json", "out_features", 10);
  folder_.set("2_Dense/config.json", "activation_function", "my.Mish");
  refused(ErrorKind::Unsupported, {"my.Mish", "Tanh"});
  folder_.set("2_Dense/config.json", "activation_function", absent);
  EXPECT_LT(largest_difference(now(), folder_.expected("vectors")), kClose);  // the default is Tanh
  remove_tree(folder_ / "2_Dense/model.safetensors");
  refused(ErrorKind::BadFile, {"2_Dense"});
}

TEST_F(SentenceModelTest, RefusesHostileModuleLists) {
  for (const char* path : {"../1_Pooling", "/etc", "1_Pooling/../../x", ".."}) {
    nlohmann::json modules = folder_.read("modules.json");
    modules[1]["path"] = path;
    folder_.write("modules.json", modules);
    refused(ErrorKind::BadFile, {"modules.json", path});
  }
  const nlohmann::json lists[] = {
      nullptr, nlohmann::json::array(),       3,
      {1, 2},  {{{"type", 1}, {"path", ""}}}, {{{"type", "Transformer"}}}};
  for (const nlohmann::json& list : lists) {
    folder_.write("modules.json", list);
    refused(ErrorKind::BadFile, {"modules.json"});
  }
  folder_.write("modules.json", {{{"type", "x.Router"}, {"path", ""}}});
  refused(ErrorKind::Unsupported, {"Router"});
  folder_.write("modules.json", {{{"type", "x.Transformer"}, {"path", ""}}});
  refused(ErrorKind::Unsupported, {"no Pooling"});
}

TEST_F(SentenceModelTest, ChecksPromptsAndSimilarity) {
  const char* file = "config_sentence_transformers.json";
  folder_.set(file, "default_prompt_name", "nonesuch");
  refused(ErrorKind::BadFile, {file, "nonesuch"});
  folder_.set(file, "default_prompt_name", "query");
  EXPECT_EQ(open().modules.default_prompt, "query");
  folder_.set(file, "prompts", {{"query", 3}});
  refused(ErrorKind::BadFile, {file, "query"});
  folder_.set(file, "prompts", {{"query", nullptr}});
  folder_.set(file, "similarity_fn_name", "dot");
  EXPECT_EQ(open().modules.similarity, Similarity::dot);
  folder_.set(file, "similarity_fn_name", "chebyshev");
  refused(ErrorKind::BadFile, {file, "chebyshev"});
}

}  // namespace
}  // namespace fovea::infer
