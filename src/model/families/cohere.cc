#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Command R (Cohere 2024): parallel sublayers behind one LayerNorm without biases, rotated pairs of
// neighbours, scaled logits.
void cohere_common(Config& io, Spec& s, float theta) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.theta = theta, .epsilon = 1e-5f, .epsilon_key = "layer_norm_eps", .tied = true});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("logit_scale", s.head.scale, 0.0625f, 1e6f);
  d.norm.kind = NormKind::layer;
  d.norm.bias = false;
  d.parallel = d.one_norm = true;
  d.position.rotary.neighbours = true;
}

void cohere_config(Config& io, Spec& s) {
  cohere_common(io, s, 500000);
  QueryKeyNorm& norm = s.decoder->attention.norm;
  bool normed = norm == QueryKeyNorm::each;
  io("use_qk_norm", normed, false);  // Command R+
  norm = normed ? QueryKeyNorm::each : QueryKeyNorm::none;
  if (io.reading()) io.refuse_unknown({});
}

// Command R7B and A (Cohere 2025): three local layers, which alone have positions, before each
// global one.
void cohere2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  cohere_common(io, s, 10000);
  windows_of_pattern(io, d, 4);
  if (io.reading()) {
    rotate_only_local(d);
    io.refuse_unknown({"_sliding_window_pattern", "layer_switch", "order_of_interleaved_layers",
                       "position_embedding_type", "rotary_pct", "use_embedding_sharing",
                       "use_gated_activation", "use_parallel_block", "use_parallel_embedding"});
  }
}

const Names cohere_names =
    llama_attention_names() +
    Names{{"model.layers.{i}.input_layernorm.weight", "decoder.{i}.norm.attention.input.weight"},
          {"model.layers.{i}.mlp.{gate,up,down}_proj.weight",
           "decoder.{i}.ffn.{gate,up,down}.weight"}};

}  // namespace

const Family cohere = {"cohere", language_models("Cohere"), cohere_config, cohere_names, "model."};
const Family cohere2 = {"cohere2", language_models("Cohere2"), cohere2_config, cohere_names,
                        "model."};

}  // namespace fovea::model
