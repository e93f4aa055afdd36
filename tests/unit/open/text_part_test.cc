// A folder of Qwen 3.5 as it is published, with an encoder of images and tensors that predict
// further tokens: the model of texts is opened alone.

#include "base/files.h"
#include "base/json.h"
#include "open/directory.h"
#include "open/model_parts.h"
#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/small_spec.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

class TextPart : public testing::Test {
 protected:
  TextPart() : model_(spec()) {
    initialise(model_, 1);
    save_model_files(folder_.path(), model_, {});
    config_ = read_json(folder_ / "config.json");
    config_.update({{"attn_output_gate", true},
                    {"mamba_ssm_dtype", "float32"},
                    {"mtp_num_hidden_layers", 1},
                    {"mtp_use_dedicated_embeddings", false}});
    config_["rope_parameters"].update({{"mrope_interleaved", true}, {"mrope_section", {1, 1, 0}}});
    for (const auto& [name, tensor] : checkpoint_tensors(model_, qwen3_5_text))
      tensors_[name.starts_with("model.") ? "model.language_model." + name.substr(6) : name] =
          tensor;
    tensors_["model.visual.patch_embed.proj.weight"] = zeros({4, 4}, DType::f32);
    tensors_["mtp.fc.weight"] = zeros({4, 4}, DType::f32);
  }
  static Spec spec() {
    Spec spec = test::small_llama({.width = 32}, 24);
    StackSpec& d = *spec.decoder;
    d.mixers = {MixerKind::gated_delta, MixerKind::attention};
    d.delta = {.heads = 4, .key_heads = 2, .key_width = 8};
    d.attention.gated = true;
    d.attention.norm = QueryKeyNorm::head;
    d.norm.unit_offset = true;
    return validated(spec);
  }
  ModelFiles open(const char* model_type) {
    write_file_atomically(folder_ / "config.json", nlohmann::json({{"model_type", model_type},
                                                                   {"text_config", config_},
                                                                   {"vision_config", {}},
                                                                   {"image_token_id", 3}})
                                                       .dump());
    write_safetensors(folder_ / "model.safetensors", tensors_);
    return open_model_files(folder_.path(), Weights::owned);
  }

  TemporaryFolder folder_;
  Transformer model_;
  nlohmann::json config_;
  std::map<std::string, Tensor> tensors_;
};

TEST_F(TextPart, IsOpenedAlone) {
  ModelFiles files = open("qwen3_5");
  ASSERT_EQ(files.warnings.size(), 1u);
  EXPECT_NE(files.warnings[0].find("only the model of texts"), std::string::npos);
  std::map<std::string, std::vector<float>> expected;
  model_.each([&](const std::string& name, Parameter& p) { expected[name] = to_floats(p.value); });
  size_t parameters = 0;
  files.model.each([&](const std::string& name, Parameter& p) {
    EXPECT_EQ(to_floats(p.value), expected[name]) << name;
    ++parameters;
  });
  EXPECT_EQ(parameters, expected.size());
}

TEST_F(TextPart, IsRefusedIfItsAttentionHasNoGates) {
  config_["attn_output_gate"] = false;
  expect_error(ErrorKind::Unsupported, {"attn_output_gate is false"}, [&] { open("qwen3_5"); });
}

}  // namespace
}  // namespace fovea::model
