#include "base/error.h"
#include "base/json.h"
#include "families/registry.h"
#include "families/shared.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

constexpr const char* kQuantization = "quantization_config";

// Reads or writes whether products round the matrices and their inputs, as AutoBitLinear does.
void ternary_products(Config& io, StackSpec& d) {
  if (!io.reading()) {
    if (d.ternary)
      io.write(kQuantization, {{"quant_method", "bitnet"},
                               {"linear_class", "autobitlinear"},
                               {"quantization_mode", "online"}});
    return;
  }
  const nlohmann::json given = io.value(kQuantization);
  if (given.is_null()) return;
  const auto says = [&](const char* key, const char* expected) {
    return given.is_object() && given.value(key, nlohmann::json()) == expected;
  };
  if (!says("linear_class", "autobitlinear") || !says("quantization_mode", "online"))
    fail(ErrorKind::Unsupported,
         "{}: {} is {}; expected linear_class autobitlinear and quantization_mode online, whose "
         "files have full weights",
         io.name(), kQuantization, brief(given));
  for (const auto& [key, value] : given.items()) {
    const bool harmless = key == "quant_method" || key == "linear_class" ||
                          key == "quantization_mode" || key == "rms_norm_eps" || value.is_null() ||
                          value == false;
    if (!harmless)
      fail(ErrorKind::Unsupported, "{}: {}.{} is {}; expected no such key", io.name(),
           kQuantization, excerpt(key), brief(value));
  }
  d.ternary = true;
}

// BitNet b1.58 (Ma et al. 2024): LLaMA with norms before the last products of sublayers, whose
// products may be ternary.
void bitnet_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.theta = 500000, .epsilon = 1e-5f, .activation = "relu2"});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  d.attention.heads_norm = d.ffn.inner_norm = true;
  ternary_products(io, d);
  if (io.reading()) io.refuse_unknown({});
}

const Names bitnet_names = llama_names() + Names{{"model.layers.{i}.self_attn.attn_sub_norm.weight",
                                                  "decoder.{i}.attention.heads_norm.weight"},
                                                 {"model.layers.{i}.mlp.ffn_sub_norm.weight",
                                                  "decoder.{i}.ffn.inner_norm.weight"}};

}  // namespace

const Family bitnet = {"bitnet", language_models("BitNet"), bitnet_config, bitnet_names, "model."};

}  // namespace fovea::model
