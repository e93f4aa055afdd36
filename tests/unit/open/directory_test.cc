// Opens a GPT-2 directory, intact and damaged: errors name the fault, and suspicious contents give
// warnings.

#include "open/directory.h"

#include <cmath>

#include "base/files.h"
#include "base/json.h"
#include "open/model_parts.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

Spec small() { return validated(test::small_decoder({.width = 8})); }

class Directory : public testing::Test {
 protected:
  Directory() : model_(small()) {
    initialise(model_, 1);
    save_model_files(folder_.path(), model_, 2);
    config_ = read_json(folder_ / "config.json");
    tensors_ = checkpoint_tensors(model_, gpt2);
  }
  void write_config(const nlohmann::json& config) {
    std::string text = config.dump();
    // nlohmann::json cannot represent 1e400.
    if (const size_t at = text.find("\"1e400\""); at != text.npos) text.replace(at, 7, "1e400");
    write_file_atomically(folder_ / "config.json", text);
  }
  void write_tensors() { write_safetensors(folder_ / "model.safetensors", tensors_); }
  ModelFiles open() { return open_model_files(folder_.path(), Weights::owned); }

  // Returns the error message, or "" if the directory is accepted.
  std::string message_with(const char* key, const nlohmann::json& value) {
    nlohmann::json config = config_;
    if (value.is_discarded())
      config.erase(key);
    else
      config[key] = value;
    write_config(config);
    try {
      open();
    } catch (const Error& error) {
      EXPECT_TRUE(error.kind() == ErrorKind::BadFile || error.kind() == ErrorKind::Unsupported)
          << error.what();
      return error.what();
    }
    return "";
  }

  TemporaryFolder folder_;
  Transformer model_;
  nlohmann::json config_;
  std::map<std::string, Tensor> tensors_;
};

const nlohmann::json kAbsent(nlohmann::json::value_t::discarded);

TEST_F(Directory, TensorsKeepTheirDtype) {
  tensors_["transformer.h.0.mlp.c_fc.weight"] =
      convert(tensors_["transformer.h.0.mlp.c_fc.weight"], DType::bf16);
  tensors_["transformer.wte.weight"] = narrow_to_halves(tensors_["transformer.wte.weight"]);
  write_tensors();
  const std::string before = read_file(folder_ / "model.safetensors");
  for (const Weights weights : {Weights::mapped, Weights::packed}) {
    ModelFiles files = open_model_files(folder_.path(), weights);
    const TemporaryFolder copy;
    save_model_files(copy.path(), files.model, 2, files.origin);
    EXPECT_TRUE(read_file(copy / "model.safetensors") == before);
  }
  ModelFiles trained = open_model_files(folder_.path(), Weights::owned);
  save_model_files(folder_.path(), trained.model, 2, trained.origin);
  const SafeTensors after(folder_ / "model.safetensors");
  for (const StoredTensor& tensor : after.stored()) EXPECT_EQ(tensor.type, "F32") << tensor.name;
}

// The matrices of GPT-2 are transposed in the file.
TEST_F(Directory, PackedMatricesKeepTheirNumbers) {
  const auto file = std::make_shared<const SafeTensors>(folder_ / "model.safetensors");
  for (const size_t most_copied : {size_t{0}, SIZE_MAX}) {  // packed one by one, or all at the end
    ModelFiles files =
        load_model(gpt2, config_, "config.json", file,
                   {.weights = Weights::packed, .most_copied = most_copied}, folder_.path());
    const auto found = checkpoint_tensors(files.model, gpt2);
    for (const auto& [name, tensor] : tensors_)
      EXPECT_EQ(to_floats(found.at(name)), to_floats(tensor)) << name;
  }
}

TEST_F(Directory, EveryKeyIsChecked) {
  struct Key {
    const char* name;
    bool optional, zero;  // may be unset or null; may be 0
  };
  for (const Key& key : std::vector<Key>{{"vocab_size", false, false},
                                         {"n_positions", false, false},
                                         {"n_embd", false, false},
                                         {"n_layer", false, false},
                                         {"n_head", false, false},
                                         {"n_inner", true, false},
                                         {"activation_function", true, false},
                                         {"layer_norm_epsilon", true, true},
                                         {"initializer_range", true, true},
                                         {"embd_pdrop", true, true},
                                         {"attn_pdrop", true, true},
                                         {"resid_pdrop", true, true},
                                         {"tie_word_embeddings", true, false},
                                         {"scale_attn_weights", true, false},
                                         {"scale_attn_by_inverse_layer_idx", true, false},
                                         {"add_cross_attention", true, false}}) {
    const auto expect = [&](const nlohmann::json& value, bool accepted) {
      const std::string message = message_with(key.name, value);
      if (accepted)
        EXPECT_EQ(message, "") << key.name;
      else
        EXPECT_NE(message.find(key.name), message.npos) << key.name << ": " << message;
    };
    expect(kAbsent, key.optional);
    expect(nullptr, key.optional);
    expect("seven", false);
    expect(-1, false);
    expect(0, key.zero);
    expect(int64_t{1} << 31, false);
    EXPECT_NE(message_with(key.name, "1e400").find("config.json"), std::string::npos) << key.name;
  }
}

TEST_F(Directory, AnUnknownKeyIsRefused) {
  EXPECT_NE(message_with("rope_theta", 10000).find("rope_theta is not known"), std::string::npos);
}

// Keys of published directories, of conversion scripts and of trainers.
TEST_F(Directory, HarmlessKeysOfPublishedDirectoriesAreAccepted) {
  const nlohmann::json published = {{"is_llama_config", true},
                                    {"rope_interleaved", false},
                                    {"transformers.js_config", {{"dtype", "q4"}}},
                                    {"use_mrope", false},
                                    {"unsloth_fixed", true},
                                    {"_attn_implementation_autoset", true},
                                    {"auto_map", {{"AutoConfig", "x.Y"}}},
                                    {"attention_bias", false},
                                    {"full_attn_mod", 1},
                                    {"interpolate_factor", 1},
                                    {"lm_head_bias", false},
                                    {"mlp_bias", false},
                                    {"temperature", 0.7}};
  for (const auto& [key, value] : published.items())
    EXPECT_EQ(message_with(key.c_str(), value), "") << key;
  const nlohmann::json harmful = {{"rope_interleaved", true},
                                  {"use_mrope", true},
                                  {"attention_bias", true},
                                  {"full_attn_mod", 2},
                                  {"quantization", {{"bits", 4}}}};
  for (const auto& [key, value] : harmful.items())
    EXPECT_NE(message_with(key.c_str(), value).find(key + " is not known"), std::string::npos);
}

TEST_F(Directory, SettingsOfGenerationAreKnownOrRefused) {
  write_file_atomically(folder_ / "generation_config.json",
                        R"({"eos_token_id": 2, "guidance_scale": 1.0, "penalty_alpha": null})");
  EXPECT_NO_THROW(open());
  write_file_atomically(folder_ / "generation_config.json", R"({"penalty_alpha": 0.6})");
  expect_error(ErrorKind::Unsupported,
               {"generation_config.json: penalty_alpha is not known and, as 0.6"}, [&] { open(); });
}

TEST_F(Directory, AnUnknownFamilyIsRefused) {
  EXPECT_NE(message_with("model_type", "gpt3").find("did you mean gpt2?"), std::string::npos);
}

TEST_F(Directory, AllInvalidTensorsAreListedInOneError) {
  tensors_.erase("transformer.ln_f.bias");
  tensors_["transformer.h.0.ln_1.weight"] = zeros({9});
  tensors_["transformer.h.7.ln_1.weight"] = zeros({8});
  write_tensors();
  expect_error(ErrorKind::BadFile,
               {"1 missing: transformer.ln_f.bias", "1 misshapen: transformer.h.0.ln_1.weight",
                "[9], expected [8]", "1 unknown: transformer.h.7.ln_1.weight"},
               [&] { open(); });
}

TEST_F(Directory, AnUntiedHeadInTheFileIsUsed) {
  tensors_["lm_head.weight"] = full({11, 8}, 0.5);
  write_tensors();
  const ModelFiles files = open();
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_NE(files.warnings[0].find("the file's head is used"), std::string::npos);
  EXPECT_FALSE(files.model.spec.head.tied);
  EXPECT_EQ(files.model.head.output.weight.value.data_as<float>()[3], 0.5f);
}

TEST_F(Directory, AHeadEqualToTheEmbeddingIsTied) {
  tensors_["lm_head.weight"] = tensors_["transformer.wte.weight"];
  write_tensors();
  const ModelFiles files = open();
  EXPECT_TRUE(files.warnings.empty());
  EXPECT_TRUE(files.model.spec.head.tied);
}

TEST_F(Directory, NonFiniteWeightsAreReported) {
  tensors_["transformer.ln_f.bias"].data_as<float>()[1] = NAN;
  write_tensors();
  const auto warnings = open().warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 of 8 elements of transformer.ln_f.bias"), std::string::npos);
}

TEST_F(Directory, EndIdsComeFromTheGenerationConfig) {
  EXPECT_EQ(open().end_ids, std::vector<int32_t>{2});
}

// Regression: an answer did not end at a token that only tokenizer_config.json names.
TEST_F(Directory, TheTokenizersEndTokenEndsTextsIfNoConfigNamesOne) {
  write_file_atomically(folder_ / "tokenizer.json",
                        R"({"model": {"type": "WordLevel", "unk_token": "a",
                            "vocab": {"a": 0, "<end>": 1, "b": 2}}})");
  write_file_atomically(folder_ / "tokenizer_config.json", R"({"eos_token": "<end>"})");
  EXPECT_EQ(parts_of(Model::open(folder_.path())).end_ids, std::vector<int32_t>{2});
  write_file_atomically(folder_ / "generation_config.json", R"({"do_sample": true})");
  config_["eos_token_id"] = nullptr;
  write_config(config_);
  EXPECT_EQ(parts_of(Model::open(folder_.path())).end_ids, std::vector<int32_t>{1});
}

TEST(Origin, PrefersTheGenerationConfigForSpecialIds) {
  Origin origin;
  origin.carried = {{"decoder_start_token_id", 4}, {"pad_token_id", 1}};
  origin.generation = {{"decoder_start_token_id", 2}, {"bos_token_id", 3}};
  EXPECT_EQ(special_id(origin, "decoder_start_token_id"), 2);
  EXPECT_EQ(configured_id(origin, "decoder_start_token_id"), 4);
  EXPECT_EQ(special_id(origin, "pad_token_id"), 1);
  EXPECT_EQ(configured_id(origin, "bos_token_id"), 3);
  EXPECT_FALSE(special_id(origin, "eos_token_id"));
}

// Older versions of transformers write infinity as Python does.
TEST(ModelSpec, IsReadFromAConfigWithInfinity) {
  const TemporaryFolder folder;
  const std::string sizes = R"({"model_type": "mamba2", "vocab_size": 5, "hidden_size": 8,
      "num_hidden_layers": 1, "num_heads": 2, "head_dim": 8, "n_groups": 1,
      "_name_or_path": "an \"Infinity\"", "time_step_limit": [0.25, )";
  write_file_atomically(folder / "config.json", sizes + "Infinity]}");
  const Spec spec = read_model_spec(folder.path());
  EXPECT_EQ(spec.decoder->state_space.least_step, 0.25f);
  EXPECT_EQ(spec.decoder->state_space.most_step, 0);
  write_file_atomically(folder / "config.json", sizes + "-Infinity]}");
  expect_error(ErrorKind::BadFile, {"config.json", "invalid"},
               [&] { read_model_spec(folder.path()); });
}

// Whisper in transformers reads scale_embedding but does not scale its embeddings.
TEST(Whisper, DoesNotScaleItsEmbeddings) {
  const nlohmann::json config = {
      {"vocab_size", 11},          {"d_model", 8},         {"scale_embedding", true},
      {"encoder_layers", 1},       {"decoder_layers", 1},  {"encoder_attention_heads", 2},
      {"encoder_ffn_dim", 8},      {"decoder_ffn_dim", 8}, {"decoder_attention_heads", 2},
      {"is_encoder_decoder", true}};
  Config reader(config, "config.json");
  Spec spec;
  describe(reader, family_named("whisper", ""), spec);
  EXPECT_FALSE(spec.scaled_embedding);
}

TEST(Registry, SelectsTheFirstFamilyThatCanExpressASpec) {
  EXPECT_STREQ(family_for(small()).model_type, "gpt2");
  const auto change = [](auto f) {
    Spec spec = small();
    f(spec);
    return validated(spec);
  };
  for (const Spec& spec :
       {change([](Spec& s) { s.decoder->norm.kind = NormKind::rms; }),
        change([](Spec& s) { s.decoder->attention.bias = false; }),
        change([](Spec& s) { s.decoder->position.kind = PositionKind::none; })}) {
    EXPECT_STREQ(family_for(spec).model_type, "fovea") << write_spec(spec);
    const TemporaryFolder folder;
    Transformer model(spec);
    initialise(model, 3);
    save_model_files(folder.path(), model, {});
    ModelFiles files = open_model_files(folder.path(), Weights::mapped);
    EXPECT_EQ(write_spec(files.model.spec), write_spec(spec));
    std::map<std::string, std::string> bytes;
    model.each([&](const std::string& name, Parameter& p) {
      bytes[name] = std::string(p.value.data_as<char>(), p.value.bytes());
    });
    files.model.each([&](const std::string& name, Parameter& p) {
      EXPECT_EQ(std::string(p.value.data_as<char>(), p.value.bytes()), bytes[name]) << name;
    });
  }
}

}  // namespace
}  // namespace fovea::model
