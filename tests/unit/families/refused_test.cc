// Directories whose contents are invalid or unsupported.

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "open/directory.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

class RefusedDirectory : public testing::Test {
 protected:
  void save(void (*change)(Spec&) = [](Spec&) {}) {
    Spec spec = test::small_decoder({.context = 6, .width = 8, .layers = 1});
    change(spec);
    Transformer model(validated(spec));
    initialise(model, 1);
    save_model_files(folder_.path(), model, 3);
    config_ = read_json(folder_ / "config.json");
    tensors_ = checkpoint_tensors(model, family_for(model.spec));
  }
  void open() { open_model_files(folder_.path(), Weights::mapped); }
  void expect(ErrorKind kind, std::initializer_list<std::string> texts) {
    write_safetensors(folder_ / "model.safetensors", tensors_);
    expect_error(kind, texts, [&] { open(); });
  }

  TemporaryFolder folder_;
  nlohmann::json config_;
  std::map<std::string, Tensor> tensors_;
};

TEST_F(RefusedDirectory, ListsAtMostFiveNames) {
  save();
  const size_t all = tensors_.size();
  tensors_.clear();
  expect(ErrorKind::BadFile, {fmt::format("{} missing", all), fmt::format("and {} more", all - 5)});
}

TEST_F(RefusedDirectory, TiedHeadOfAnotherShape) {
  save();
  tensors_["lm_head.weight"] = zeros({12, 8});
  expect(ErrorKind::BadFile, {"1 misshapen: lm_head.weight is [12, 8], expected [11, 8]"});
}

TEST_F(RefusedDirectory, TensorUnderTwoNames) {
  save();
  tensors_["wte.weight"] = zeros({11, 8});
  expect(ErrorKind::BadFile, {"1 unknown: wte.weight"});
}

TEST_F(RefusedDirectory, IntegerWeights) {
  for (const DType dtype : {DType::i32, DType::i64}) {
    save();
    tensors_["transformer.ln_f.bias"] = zeros({8}, dtype);
    expect(ErrorKind::Unsupported, {folder_.path(), "transformer.ln_f.bias is int", "fp32"});
  }
}

TEST_F(RefusedDirectory, PickledWeights) {
  save();
  const std::string pickled = folder_ / "pytorch_model.bin";
  std::filesystem::rename(folder_ / "model.safetensors", pickled);
  for (const std::string& path : {folder_.path(), pickled}) {
    expect_error(ErrorKind::Unsupported, {pickled, "pickle files are not read", "convert with"},
                 [&] { open_model_files(path, Weights::mapped); });
  }
}

TEST_F(RefusedDirectory, PathsThatAreNoDirectory) {
  const auto refused = [](const std::string& path, const char* text) {
    expect_error(ErrorKind::BadFile, {path + ": " + text + "; expected a model's directory"},
                 [&] { open_model_files(path, Weights::mapped); });
  };
  refused(folder_ / "missing", "is missing");
  write_file_atomically(folder_ / "file", "x");
  refused(folder_ / "file", "not a directory");
}

TEST_F(RefusedDirectory, NamesOfTheHubAreExplained) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      open_model_files(path, Weights::mapped);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const char* name : {"no-such-model", "no-such-owner/no-such-model"})
    EXPECT_NE(message(name).find("fovea pull " + std::string(name)), std::string::npos);
  for (const char* path : {"", "./no-such-model", "/no/model", "no/such/model", "tests/no-model"})
    EXPECT_EQ(message(path).find("fovea pull"), std::string::npos) << path;
}

TEST_F(RefusedDirectory, HostileJson) {
  save();
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), std::string("3"),
        std::string("\xff\xfe{}"), std::string(64, '\0'),
        std::string(R"({"model_type": "gpt2", "n_embd": 8, "n_embd": 8})"),
        std::string(R"({"model_type": "gpt2", "n_embd": NaN})"), std::string(100'000, '['),
        objects}) {
    write_file_atomically(folder_ / "config.json", text);
    expect_error(ErrorKind::BadFile, {"config.json"}, [&] { open(); });
  }
}

TEST_F(RefusedDirectory, HugeSizesWithoutAllocation) {
  save();
  for (const char* key : {"vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"}) {
    for (const nlohmann::json& value :
         {nlohmann::json(4096), nlohmann::json(1 << 24), nlohmann::json(1e12),
          nlohmann::json(uint64_t{1} << 63), nlohmann::json(UINT64_MAX)}) {
      nlohmann::json config = config_;
      config[key] = value;
      write_file_atomically(folder_ / "config.json", config.dump());
      expect_error(ErrorKind::BadFile, {folder_.path(), "expected"}, [&] { open(); });
    }
  }
}

TEST_F(RefusedDirectory, UnsupportedFeatures) {
  save();
  const std::pair<const char*, nlohmann::json> features[] = {
      {"scale_attn_weights", false},
      {"scale_attn_by_inverse_layer_idx", true},
      {"add_cross_attention", true},
      {"sliding_window", 128},
      {"rope_scaling", {{"type", "linear"}}},
      {"attn_logit_softcapping", 50.0},
      {"num_key_value_heads", 1},
      {"attention_bias", true},
      {"quantization_config", {{"bits", 4}}}};
  for (const auto& [key, value] : features) {
    nlohmann::json config = config_;
    config[key] = value;
    write_file_atomically(folder_ / "config.json", config.dump());
    expect_error(ErrorKind::Unsupported, {"config.json", key}, [&] { open(); });
  }
}

TEST_F(RefusedDirectory, NumbersBeyondTheDtypeOfTheFile) {
  Transformer model(validated(test::small_decoder({.context = 6, .width = 8, .layers = 1})));
  initialise(model, 1);
  Origin origin;
  const auto refused = [&](DType dtype, float number, const char* text) {
    model.each([&](const std::string&, Parameter& p) { p.value.data_as<float>()[0] = number; });
    origin.save_all_as(dtype);
    expect_error(ErrorKind::InvalidArgument, {folder_.path(), text, "a larger range"},
                 [&] { save_model_files(folder_.path(), model, 3, origin); });
  };
  refused(DType::f16, 7e4f, "above fp16's 65504");
  refused(DType::bf16, 3.4e38f, "above bf16's 3.39e38");
}

TEST_F(RefusedDirectory, ScalingsThatPhi3Lacks) {
  const auto refused = [](const nlohmann::json& config, const char* text) {
    Config io(config, "config.json");
    Spec spec;
    spec.decoder.emplace();
    expect_error(ErrorKind::Unsupported, {text, "in a phi3 model; expected default or longrope"},
                 [&] { phi3.config(io, spec); });
  };
  nlohmann::json config = {{"vocab_size", 9},         {"hidden_size", 8},
                           {"num_hidden_layers", 1},  {"num_attention_heads", 2},
                           {"intermediate_size", 16}, {"rope_scaling", {{"type", "linear"}}}};
  refused(config, "config.json: rope_scaling.type is linear");
  config["rope_parameters"] = {{"rope_type", "yarn"}};
  refused(config, "config.json: rope_parameters.rope_type is yarn");
}

TEST_F(RefusedDirectory, InvalidSpecOfFovea) {
  save([](Spec& s) { s.decoder->ffn.gated = true; });
  const auto refused = [&](ErrorKind kind, const char* path, const nlohmann::json& value) {
    nlohmann::json config = config_;
    config[nlohmann::json::json_pointer(path)] = value;
    write_file_atomically(folder_ / "config.json", config.dump());
    expect_error(kind, {"config.json"}, [&] { open(); });
  };
  refused(ErrorKind::BadFile, "/spec/width", 0);
  refused(ErrorKind::BadFile, "/spec/width", "8");
  refused(ErrorKind::BadFile, "/spec/decoder/layers", 1e12);
  refused(ErrorKind::BadFile, "/spec/decoder/attention/heads", 3);
  refused(ErrorKind::BadFile, "/spec/decoder/norm/kind", "batch");
  refused(ErrorKind::BadFile, "/spec/sliding", true);
  refused(ErrorKind::BadFile, "/spec", nullptr);
  refused(ErrorKind::Unsupported, "/rope_theta", 10000);
}

}  // namespace
}  // namespace fovea::model
