// Encoders of texts in GGUF files: each architecture is written and read, with the modules of
// embedders, and what llama.cpp would compute in a different way is refused or named.

#include "base/json.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/module_files.h"
#include "families/registry.h"
#include "formats/gguf/model.h"
#include "open/directory.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

using EncoderJson = nlohmann::json;

const EncoderJson kEncoder = {{"vocab_size", 11},
                              {"hidden_size", 8},
                              {"num_hidden_layers", 3},
                              {"num_attention_heads", 2},
                              {"intermediate_size", 12},
                              {"layer_norm_eps", 1e-5},
                              {"tie_word_embeddings", true},
                              {"max_position_embeddings", 8}};
const EncoderJson kNomic = {{"vocab_size", 11},
                            {"n_embd", 8},
                            {"n_layer", 3},
                            {"n_head", 2},
                            {"n_inner", 12},
                            {"n_positions", 8},
                            {"rotary_emb_fraction", 1.0}};
const EncoderJson kGemma = {{"vocab_size", 11},
                            {"hidden_size", 8},
                            {"num_hidden_layers", 7},
                            {"num_attention_heads", 2},
                            {"num_key_value_heads", 1},
                            {"head_dim", 4},
                            {"intermediate_size", 12},
                            {"query_pre_attn_scalar", 4},
                            {"max_position_embeddings", 8},
                            {"sliding_window", 4},
                            {"use_bidirectional_attention", true}};
const EncoderJson kT5 = {{"vocab_size", 11},
                         {"d_model", 8},
                         {"d_kv", 4},
                         {"d_ff", 12},
                         {"num_layers", 3},
                         {"num_heads", 2},
                         {"feed_forward_proj", "gated-gelu"}};

Transformer encoder_of(const Family& family, const char* architecture, EncoderJson config,
                       const EncoderJson& more = EncoderJson::object()) {
  config["architectures"] = {architecture};
  if (!more.is_null()) config.update(more);
  Spec spec;
  Config reader(config, "config.json");
  describe(reader, family, spec);
  Transformer model(spec);
  initialise(model, 1);
  return model;
}

std::vector<std::string> write_encoder(const std::string& path, Transformer& model,
                                       const Family& family,
                                       const TextVectorModules& modules = {}) {
  GgufModel file(model, &family, FileDType::fp32);
  file.add_modules(modules);
  return write_gguf_file(path, file, std::nullopt, model.spec.vocabulary, values_of(model));
}

struct WrittenEncoder {
  const char* name;
  const Family& family;
  const char* architecture;
  const EncoderJson& sizes;
  EncoderJson more;
  const char* written_as;
  const char* read_as;  // the class of transformers of a directory made from the file
};

std::vector<WrittenEncoder> encoders_like_bert() {
  return {{"bert", bert, "BertModel", kEncoder, {}, "bert", "BertModel"},
          {"masked words", bert, "BertForMaskedLM", kEncoder, {}, "bert", "BertModel"},
          {"xlm-roberta",
           xlm_roberta,
           "XLMRobertaModel",
           kEncoder,
           {{"pad_token_id", 1}, {"type_vocab_size", 1}},
           "bert",
           "BertModel"},
          {"modernbert",
           modernbert,
           "ModernBertModel",
           kEncoder,
           {{"local_attention", 4}, {"pad_token_id", 0}, {"layer_norm_eps", nullptr}},
           "modern-bert",
           "ModernBertModel"},
          {"nomic, transformers",
           nomic_bert,
           "NomicBertModel",
           kEncoder,
           {},
           "nomic-bert",
           "NomicBertModel"},
          {"nomic, own keys",
           nomic_bert,
           "NomicBertModel",
           kNomic,
           {{"activation_function", "swiglu"},
            {"qkv_proj_bias", false},
            {"mlp_fc1_bias", false},
            {"mlp_fc2_bias", false}},
           "nomic-bert",
           "NomicBertModel"},
          {"nomic, experts",
           nomic_bert,
           "NomicBertModel",
           kNomic,
           {{"activation_function", "gelu"},
            {"moe_every_n_layers", 2},
            {"num_experts", 3},
            {"moe_top_k", 2}},
           "nomic-bert-moe",
           "NomicBertModel"}};
}

std::vector<WrittenEncoder> other_encoders() {
  return {{"jina",
           jina_embeddings_v3,
           "JinaEmbeddingsV3Model",
           kEncoder,
           {},
           "jina-bert-v3",
           "JinaEmbeddingsV3Model"},
          {"gemma", gemma3, "Gemma3TextModel", kGemma, {}, "gemma-embedding", "Gemma3TextModel"},
          {"gemma, words",
           gemma3,
           "Gemma3ForCausalLM",
           kGemma,
           {},
           "gemma-embedding",
           "Gemma3TextModel"},
          {"t5", t5, "T5EncoderModel", kT5, {}, "t5encoder", "T5EncoderModel"},
          {"t5, relu",
           t5,
           "T5EncoderModel",
           kT5,
           {{"feed_forward_proj", "relu"}},
           "t5encoder",
           "T5EncoderModel"}};
}

// Compares the parameters that the file has. A new model's biases of sums of experts are 0.
void expect_same_parameters(Transformer& model, Transformer& read, int64_t offset) {
  std::map<std::string, std::vector<float>> values;
  model.each([&](const std::string& name, Parameter& p) { values[name] = to_floats(p.value); });
  read.each([&](const std::string& name, Parameter& p) {
    std::vector<float> expected = values.at(name);
    if (name == "encoder.position")
      expected.erase(expected.begin(), expected.begin() + offset * model.spec.width);
    EXPECT_EQ(to_floats(p.value), expected) << name;
  });
}

TEST(GgufEncoder, EveryArchitectureIsWrittenAndRead) {
  std::vector<WrittenEncoder> all = encoders_like_bert();
  for (const WrittenEncoder& other : other_encoders()) all.push_back(other);
  for (const WrittenEncoder& one : all) {
    SCOPED_TRACE(one.name);
    const TemporaryFolder folder;
    const std::string path = folder / "model.gguf";
    Transformer model = encoder_of(one.family, one.architecture, one.sizes, one.more);
    const auto warnings = write_encoder(path, model, one.family);
    EXPECT_EQ(warnings.size(), one.architecture == std::string("BertForMaskedLM") ? 1 : 0);
    const Gguf file(path);
    EXPECT_EQ(file.text("general.architecture"), one.written_as);
    EXPECT_EQ(file.boolean(std::string(one.written_as) + ".attention.causal"), false);
    EXPECT_FALSE(file.integer(std::string(one.written_as) + ".pooling_type"));
    ModelFiles files = open_model_files(path, Weights::owned);
    EXPECT_TRUE(files.warnings.empty());
    EXPECT_EQ(files.model.spec.head.kind, HeadKind::pooled);
    EXPECT_FALSE(files.model.spec.head.transform);
    expect_same_parameters(model, files.model,
                           model.spec.encoder ? model.spec.encoder->position.offset : 0);
    const auto config = nlohmann::json::parse(config_json(files.model, files.origin, {}));
    EXPECT_EQ(config["architectures"][0], one.read_as);
    EXPECT_EQ(can_express(*files.origin.family, files.model.spec), true);
  }
}

TEST(GgufEncoder, ADecoderWithoutAHeadIsWrittenAsOneWithATiedHead) {
  const TemporaryFolder folder;
  EncoderJson sizes = kGemma;
  for (const char* key : {"query_pre_attn_scalar", "sliding_window", "use_bidirectional_attention"})
    sizes.erase(key);
  Transformer model = encoder_of(qwen3, "Qwen3Model", sizes);
  TextVectorModules modules;
  modules.pooling = GgufPooling::last;
  EXPECT_TRUE(write_encoder(folder / "model.gguf", model, qwen3, modules).empty());
  EXPECT_EQ(modules_of_gguf(folder / "model.gguf").pooling, GgufPooling::last);
  ModelFiles files = open_model_files(folder / "model.gguf", Weights::owned);
  EXPECT_EQ(files.model.spec.head.kind, HeadKind::language_model);
  EXPECT_TRUE(files.model.spec.head.tied);
  expect_same_parameters(model, files.model, 0);
}

TEST(GgufEncoder, TellsWhatIsLeftOut) {
  const TemporaryFolder folder;
  Transformer words = encoder_of(bert, "BertForMaskedLM", kEncoder);
  const auto head = write_encoder(folder / "a.gguf", words, bert);
  ASSERT_EQ(head.size(), 1u);
  EXPECT_NE(head[0].find("the head for masked words is left out"), std::string::npos);
  Transformer experts =
      encoder_of(nomic_bert, "NomicBertModel", kNomic,
                 {{"activation_function", "gelu"}, {"moe_every_n_layers", 2}, {"num_experts", 3}});
  experts.each([](const std::string& name, Parameter& p) {
    if (name == "encoder.1.ffn.sum_bias") p.value = full(p.shape, 0.5);
  });
  const auto bias = write_encoder(folder / "b.gguf", experts, nomic_bert);
  ASSERT_EQ(bias.size(), 1u);
  EXPECT_NE(bias[0].find("encoder.1.ffn.sum_bias is left out"), std::string::npos);
}

TEST(GgufEncoder, RefusesWhatLlamaCppComputesInAnotherWay) {
  const auto refused = [](const Family& family, const char* architecture, const EncoderJson& sizes,
                          const EncoderJson& more, const char* text) {
    Transformer model = encoder_of(family, architecture, sizes, more);
    expect_error(ErrorKind::Unsupported, {text},
                 [&] { GgufModel(model, &family, FileDType::fp32); });
  };
  const char* none = "no supported GGUF architecture can express its Spec";
  refused(t5, "T5EncoderModel", kT5, {{"relative_attention_max_distance", 64}}, none);
  refused(t5, "T5EncoderModel", kT5, {{"feed_forward_proj", "gated-silu"}}, none);
  refused(bert, "BertModel", kEncoder, {{"hidden_act", "relu"}}, none);
  refused(nomic_bert, "NomicBertModel", kNomic, {{"rotary_emb_fraction", 0.5}}, none);
  refused(t5, "T5ForConditionalGeneration", kT5, {}, "it has an encoder and a decoder");
  refused(bert, "BertForTokenClassification", kEncoder, {}, "an encoder and a head for tokens");
}

Tensor counted(const Shape& shape) {
  const Tensor x = empty(shape);
  for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = static_cast<float>(i);
  return x;
}

TEST(GgufEncoder, ModulesAreWrittenAndRead) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf", directory = folder / "directory";
  Transformer model = encoder_of(gemma3, "Gemma3TextModel", kGemma);
  TextVectorModules modules;
  modules.pooling = GgufPooling::last;
  modules.dense = {counted({5, 8}), counted({8, 5})};
  write_encoder(path, model, gemma3, modules);
  const Gguf file(path);
  EXPECT_EQ(file.integer("gemma-embedding.pooling_type"), 3);
  EXPECT_EQ(file.integer("gemma-embedding.dense_2_feat_out"), 5);
  EXPECT_EQ(file.integer("gemma-embedding.dense_3_feat_in"), 5);
  EXPECT_TRUE(open_model_files(path, Weights::owned).warnings.empty());
  make_directories(directory);
  write_modules(directory, modules_of_gguf(path), 8);
  const TextVectorModules again = modules_of_directory(directory);
  EXPECT_EQ(again.pooling, GgufPooling::last);
  EXPECT_TRUE(again.unit_length);
  ASSERT_EQ(again.dense.size(), 2u);
  EXPECT_EQ(again.dense[0].shape(), (Shape{5, 8}));
  EXPECT_EQ(to_floats(again.dense[1]), to_floats(modules.dense[1]));
}

TEST(GgufEncoder, RefusesModulesThatLlamaCppDoesNotHave) {
  const TemporaryFolder folder;
  Transformer words = encoder_of(bert, "BertModel", kEncoder);
  Transformer gemma = encoder_of(gemma3, "Gemma3TextModel", kGemma);
  TextVectorModules modules;
  modules.pooling = GgufPooling::mean;
  modules.dense = {counted({8, 8})};
  expect_error(ErrorKind::Unsupported, {"no Dense modules like these for bert"},
               [&] { write_encoder(folder / "a.gguf", words, bert, modules); });
  modules.dense = {counted({4, 8})};
  expect_error(ErrorKind::Unsupported, {"8 inputs and 8 outputs"},
               [&] { write_encoder(folder / "a.gguf", gemma, gemma3, modules); });
  const auto in_directory = [&](const EncoderJson& pooling, const EncoderJson& dense,
                                std::initializer_list<std::string> texts) {
    write_module_list(folder.path(), {"Transformer", "Pooling", "Dense"});
    for (const auto& [name, config] : {std::pair("/1_Pooling", pooling), {"/2_Dense", dense}}) {
      make_directories(folder.path() + name);
      write_file_atomically(folder.path() + name + "/config.json", config.dump());
    }
    expect_error(ErrorKind::Unsupported, texts, [&] { modules_of_directory(folder.path()); });
  };
  in_directory({{"pooling_mode_max_tokens", true}}, {}, {"the pooling is max"});
  in_directory({{"pooling_mode", {"mean", "cls"}}}, {}, {"the pooling is mean and cls"});
  in_directory({{"pooling_mode", "mean"}, {"include_prompt", false}}, {}, {"include_prompt"});
  in_directory({{"pooling_mode", "mean"}}, {{"bias", true}}, {"2_Dense/config.json: has a bias"});
  write_module_list(folder.path(), {"Transformer", "Dense"});
  expect_error(ErrorKind::Unsupported, {"the module Dense at this position"},
               [&] { modules_of_directory(folder.path()); });
}

TEST(GgufEncoder, RefusesHostileFiles) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  const auto damaged = [&](const Family& family, Transformer& model, auto&& change, ErrorKind kind,
                           std::initializer_list<std::string> texts) {
    test::GgufContents contents = test::gguf_contents(model, &family);
    change(contents);
    contents.write(path);
    expect_error(kind, texts, [&] {
      modules_of_gguf(path);
      open_model_files(path, Weights::owned);
    });
  };
  Transformer words = encoder_of(bert, "BertModel", kEncoder);
  damaged(bert, words, [](auto& c) { c.metadata.integer("bert.pooling_type", 9); },
          ErrorKind::BadFile, {"bert.pooling_type is 9; expected 0 to 4"});
  damaged(bert, words, [](auto& c) { c.metadata.integer("bert.attention.key_length", 5); },
          ErrorKind::Unsupported, {"attention.key_length is 5", "expected 4"});
  damaged(bert, words, [](auto& c) { c.metadata.integer("bert.new_idea", 5); },
          ErrorKind::Unsupported, {"new_idea is not known"});
  damaged(bert, words,
          [](auto& c) {
            for (GgufTensor& tensor : c.tensors)
              if (tensor.name == "position_embd.weight") tensor.shape = {4, 16};
          },
          ErrorKind::BadFile, {"position_embd.weight is [4, 16], expected [8, 8]"});
  damaged(bert, words,
          [](auto& c) {
            std::erase_if(c.tensors, [](auto& t) { return t.name == "blk.2.attn_q.weight"; });
          },
          ErrorKind::BadFile, {"1 missing: blk.2.attn_q.weight"});
  Transformer experts =
      encoder_of(nomic_bert, "NomicBertModel", kNomic,
                 {{"activation_function", "gelu"}, {"moe_every_n_layers", 2}, {"num_experts", 3}});
  damaged(nomic_bert, experts,
          [](auto& c) {
            for (GgufTensor& tensor : c.tensors)
              if (tensor.name == "blk.1.ffn_up_exps.weight") tensor.shape = {3, 8, 12};
          },
          ErrorKind::BadFile, {"blk.1.ffn_up_exps.weight is [3, 8, 12]"});
  Transformer gemma = encoder_of(gemma3, "Gemma3TextModel", kGemma);
  damaged(gemma3, gemma,
          [](auto& c) {
            c.tensors.push_back(c.tensors.front());
            c.tensors.back().name = "dense_2.weight";
            c.tensors.back().shape = {8, 11};
          },
          ErrorKind::BadFile, {"dense_2.weight is [8, 11]; expected rows of 8"});
}

}  // namespace
}  // namespace fovea::model
