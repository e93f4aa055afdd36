// Classifiers in GGUF files: heads, labels and positions are written and read, and models that
// llama.cpp would compute in a different way are refused.

#include "checkpoint/gguf_tensors.h"
#include "families/registry.h"
#include "formats/gguf/model.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

const Json kSizes = {{"vocab_size", 11},           {"hidden_size", 8},
                     {"num_hidden_layers", 4},     {"num_attention_heads", 2},
                     {"intermediate_size", 12},    {"num_labels", 3},
                     {"num_key_value_heads", 1},   {"head_dim", 4},
                     {"rms_norm_eps", 1e-5},       {"layer_norm_eps", 1e-5},
                     {"tie_word_embeddings", true}};

Transformer model_of(const Family& family, const char* architecture, const Json& more = {}) {
  Json config = kSizes;
  config["architectures"] = {architecture};
  if (!more.is_null()) config.update(more);
  const bool encoder = std::string(architecture).find("Qwen") == std::string::npos;
  for (const char* key : {"num_key_value_heads", "head_dim", "rms_norm_eps"})
    if (encoder) config.erase(key);
  if (!encoder) config.erase("layer_norm_eps");
  Spec spec;
  Config reader(config, "config.json");
  describe(reader, family, spec);
  Transformer model(spec);
  initialise(model, 1);
  return model;
}

const std::vector<std::string> kLabels = {"calm", "loud", "old"};

Origin with_labels(const std::vector<std::string>& labels) {
  Origin origin;
  origin.labels = labels;
  return origin;
}

std::string classifier_file(const TemporaryFolder& folder, Transformer& model, const Family& family,
                            const Origin& origin = with_labels(kLabels)) {
  GgufModel file(model, &family, FileDType::fp32);
  file.add_labels(origin);
  const std::string path = folder / "model.gguf";
  write_gguf_file(path, file, std::nullopt, model.spec.vocabulary, values_of(model));
  return path;
}

// Compares all parameters; the file lacks the first `offset` rows of the positions.
void expect_same_weights(Transformer& model, Transformer& read, int64_t offset) {
  std::map<std::string, std::vector<float>> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = to_floats(p.value); });
  size_t count = 0;
  read.each([&](const std::string& name, Parameter& p) {
    std::vector<float> expected = values.at(name);
    if (name == "encoder.position")
      expected.erase(expected.begin(), expected.begin() + offset * model.spec.width);
    EXPECT_EQ(to_floats(p.value), expected) << name;
    ++count;
  });
  EXPECT_EQ(count, values.size());
}

struct WrittenClassifier {
  const char* name;
  const Family& family;
  const char *architecture, *written_as;
  Json more;
};

TEST(GgufClassifier, PreservesHeadLabelsAndWeights) {
  const std::vector<WrittenClassifier> cases = {
      {"bert", bert, "BertForSequenceClassification", "bert", {{"max_position_embeddings", 6}}},
      {"roberta",
       roberta,
       "RobertaForSequenceClassification",
       "bert",
       {{"max_position_embeddings", 8}, {"type_vocab_size", 1}, {"pad_token_id", 1}}},
      {"modernbert, first token",
       modernbert,
       "ModernBertForSequenceClassification",
       "modern-bert",
       {{"local_attention", 4},
        {"max_position_embeddings", 6},
        {"pad_token_id", 0},
        {"classifier_pooling", "cls"}}},
      {"modernbert, mean",
       modernbert,
       "ModernBertForSequenceClassification",
       "modern-bert",
       {{"local_attention", 4},
        {"max_position_embeddings", 6},
        {"pad_token_id", 0},
        {"classifier_pooling", "mean"},
        {"hidden_activation", "silu"}}},
      {"qwen3",
       qwen3,
       "Qwen3ForSequenceClassification",
       "qwen3",
       {{"max_position_embeddings", 6}}}};
  for (const WrittenClassifier& one : cases) {
    const TemporaryFolder folder;
    Transformer model = model_of(one.family, one.architecture, one.more);
    const std::string path = classifier_file(folder, model, one.family);
    EXPECT_EQ(Gguf(path).text("general.architecture"), one.written_as) << one.name;
    EXPECT_EQ(Gguf(path).integer(std::string(one.written_as) + ".pooling_type"), 4) << one.name;
    ModelFiles files = open_model_files(path, Weights::owned);
    EXPECT_TRUE(files.warnings.empty()) << one.name;
    EXPECT_EQ(files.origin.labels, kLabels) << one.name;
    const int64_t offset = model.spec.encoder ? model.spec.encoder->position.offset : 0;
    EXPECT_EQ(offset, one.written_as == std::string("bert") && one.name[0] == 'r' ? 2 : 0);
    expect_same_weights(model, files.model, offset);
    Spec expected = model.spec;
    if (expected.encoder) expected.encoder->position.offset = 0;
    expected.padding = -1;
    expected.dropout = {};
    if (expected.decoder) expected.decoder->ffn.experts.balance = expected.decoder->init_scale = 0;
    EXPECT_EQ(write_spec(files.model.spec), write_spec(expected)) << one.name;
  }
}

TEST(GgufClassifier, KeepsWhatTheLabelsMean) {
  const TemporaryFolder folder;
  Transformer model = model_of(bert, "BertForSequenceClassification");
  Origin origin = with_labels(kLabels);
  origin.problem = ProblemType::multi_label;
  const std::string path = classifier_file(folder, model, bert, origin);
  const ModelFiles files = open_model_files(path, Weights::owned);
  EXPECT_EQ(files.origin.problem, ProblemType::multi_label);
}

TEST(GgufClassifier, NamesLabelsOfModelsWithoutNames) {
  const TemporaryFolder folder;
  Transformer model = model_of(bert, "BertForSequenceClassification");
  const std::string path = classifier_file(folder, model, bert, Origin());
  EXPECT_EQ(Gguf(path).texts("bert.classifier.output_labels")->at(2), "LABEL_2");
}

// As llama.cpp's converter writes BERT.
TEST(GgufClassifier, WarnsIfTheLayerBeforeTheLabelsIsMissing) {
  const TemporaryFolder folder;
  Transformer model = model_of(bert, "BertForSequenceClassification");
  test::GgufContents contents = test::gguf_contents(model, &bert);
  std::erase_if(contents.tensors, [](const GgufTensor& tensor) {
    return tensor.name == "cls.weight" || tensor.name == "cls.bias";
  });
  contents.write(folder / "model.gguf");
  const ModelFiles files = open_model_files(folder / "model.gguf", Weights::owned);
  EXPECT_FALSE(files.model.spec.head.transform);
  EXPECT_EQ(files.model.spec.head.labels, 3);
  EXPECT_TRUE(files.origin.labels.empty());
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_NE(files.warnings[0].find("has no cls.weight"), std::string::npos);
}

TEST(GgufClassifier, RefusesLabelsThatDoNotFitTheHead) {
  const TemporaryFolder folder;
  Transformer model = model_of(bert, "BertForSequenceClassification");
  const std::string path = folder / "model.gguf";
  test::GgufContents two = test::gguf_contents(model, &bert);
  two.metadata.texts("bert.classifier.output_labels", {"a", "b"});
  two.write(path);
  expect_error(ErrorKind::BadFile, {"bert.classifier.output_labels has 2 names", "expected 3"},
               [&] { open_model_files(path, Weights::owned); });
  test::GgufContents broken = test::gguf_contents(model, &bert);
  broken.metadata.texts("bert.classifier.output_labels", {"a", "\xff", "c"});
  broken.write(path);
  expect_error(ErrorKind::BadFile, {"output_labels[1] is not text", "UTF-8"},
               [&] { open_model_files(path, Weights::owned); });
}

TEST(GgufClassifier, RefusesWhatLlamaCppComputesInAnotherWay) {
  const auto refused = [](const Family& family, const char* architecture,
                          std::initializer_list<std::string> texts, const Json& more = {}) {
    Transformer model = model_of(family, architecture, more);
    expect_error(ErrorKind::Unsupported, texts,
                 [&] { GgufModel(model, &family, FileDType::fp32); });
  };
  refused(electra, "ElectraForSequenceClassification", {"this classifier", "bert, roberta"});
  refused(qwen2, "Qwen2ForSequenceClassification", {"this classifier", "qwen3"});
  refused(qwen3, "Qwen3ForSequenceClassification", {"one label", "softmax", "at least 2"},
          {{"num_labels", 1}});
  refused(bert, "BertForTokenClassification", {"an encoder and a head for tokens"});
  refused(qwen3, "Qwen3ForTokenClassification", {"its head is not a language model"});
}

}  // namespace
}  // namespace fovea::model
