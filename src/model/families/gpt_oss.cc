#include "base/error.h"
#include "base/json.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// gpt-oss (OpenAI 2025): experts with biases and clipped gates, sinks, and windows in every second
// layer.
void gpt_oss_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.theta = 150000,
               .epsilon = 1e-5f,
               .activation_key = nullptr,
               .kv_heads = 8,
               .head_width = 64});
  io.only("hidden_act", "silu");  // a name only: the sigmoid has a slope of its own
  io.only("swiglu_alpha", 1.702);
  d.ffn.activation = Activation::quick_gelu;
  d.ffn.up_offset = 1;
  io("swiglu_limit", d.ffn.gate_limit, 7, 1e6f);
  d.ffn.bias = d.ffn.experts.router_bias = d.attention.sinks = true;
  io("attention_bias", d.attention.bias, true);
  d.attention.output_bias = d.attention.bias;
  int64_t window = 128;
  for (const int64_t each : d.attention.windows) window = each > 0 ? each : window;
  io("sliding_window", window, window);
  io.layer_types(d, window, {true, false});
  ExpertsSpec& e = d.ffn.experts;
  io("num_local_experts", e.count, 128);
  io("num_experts_per_tok", e.chosen, 4);
  io("router_aux_loss_coef", e.balance, 0.9f, 1e3f);
  if (const nlohmann::json given = io.value("quantization_config");
      !given.is_null() &&
      (!given.is_object() || given.value("quant_method", nlohmann::json()) != "mxfp4"))
    fail(ErrorKind::Unsupported, "{}: quantization_config is {}; expected quant_method mxfp4",
         io.name(), brief(given));
  if (io.reading()) io.refuse_unknown({"experts_per_token", "initial_context_length"});
}

const Names gpt_oss_names =
    llama_attention_names() +
    Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"model.layers.{i}.self_attn.sinks", "decoder.{i}.attention.sinks"},
          {"model.layers.{i}.mlp.router.{weight,bias}", "decoder.{i}.ffn.router.{weight,bias}"},
          {"model.layers.{i}.mlp.experts.gate_up_proj{,_bias}",
           "decoder.{i}.ffn.experts.{e}.{gate+up}.{weight,bias}", Stored::column_by_column},
          {"model.layers.{i}.mlp.experts.down_proj{,_bias}",
           "decoder.{i}.ffn.experts.{e}.down.{weight,bias}", Stored::column_by_column}};

}  // namespace

const Family gpt_oss = {"gpt_oss", language_models("GptOss"), gpt_oss_config, gpt_oss_names,
                        "model."};

}  // namespace fovea::model
