#include <algorithm>

#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// OLMo 2 (OLMo Team 2025): LLaMA with norms on the sublayers' outputs, and norms of queries and
// keys over all heads.
void olmo2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  llama_sizes(io, s, {.theta = 500000, .epsilon = 1e-5f});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  if (io.reading()) io.refuse_unknown({});
}

// OLMo 3 (2025): three local layers before each global one, whose positions alone may be scaled.
void olmo3_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  if (io.reading()) d.position.rotary.local_theta = 500000;
  llama_sizes(io, s, {.theta = 500000, .epsilon = 1e-5f, .rope_by_layer_type = true});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  windows_of_pattern(io, d, 4);
  if (io.reading()) io.refuse_unknown({});
}

// OLMo Hybrid (2026): three layers with the gated delta rule, with norms of their inputs, before
// each layer of OLMo 3. Published models have no positions.
void olmo_hybrid_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  const nlohmann::json rope = io.value("rope_parameters");
  const bool rotary = io.reading() ? !rope.is_object() || !rope.contains("rope_theta") ||
                                         !rope["rope_theta"].is_null()
                                   : d.position.kind == PositionKind::rotary;
  llama_sizes(io, s, {});
  if (!rotary) {
    io.write("rope_parameters", {{"rope_type", "default"}, {"rope_theta", nullptr}});
    io.write("rope_theta", nullptr);
    d.position = {.kind = PositionKind::none};
  }
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  mixers_by_type(io, d, MixerKind::gated_delta, "linear_attention", [&](int64_t layer) {
    return layer % 4 == 3 || (d.layers < 4 && layer + 1 == d.layers);
  });
  const int64_t heads = d.attention.heads;
  io("linear_num_value_heads", d.delta.heads, heads);
  io("linear_num_key_heads", d.delta.key_heads, heads);
  io("linear_key_head_dim", d.delta.key_width,
     3 * s.width / (4 * std::max<int64_t>(1, d.delta.key_heads)));
  io("linear_value_head_dim", d.delta.value_width, 2 * d.delta.key_width);
  io("linear_conv_kernel_dim", d.delta.convolution, 4);
  io("linear_allow_neg_eigval", d.delta.doubled, true);
  if (!io.reading()) return;
  d.recurrent_pre_norm = true;
  d.delta.epsilon = 1e-5f;  // not a setting
  io.refuse_unknown({"linear_a_log_max", "linear_a_log_min", "linear_dt_init_floor",
                     "linear_dt_max", "linear_dt_min"});
}

// The names of the norms differ between the kinds of layers.
const Names olmo_hybrid_names =
    Names{{"model.layers.{i}.{attention,feedforward}_layer_norm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"model.layers.{i}.linear_attn.{q,k,v,g,b,a,o}_proj.weight",
           "decoder.{i}.delta.{query,key,value,gate,beta,decay,output}.weight"},
          {"model.layers.{i}.linear_attn.{q,k,v}_conv1d.weight",
           "decoder.{i}.delta.{query,key,value}_convolution", Stored::column_convolution},
          {"model.layers.{i}.linear_attn.dt_bias", "decoder.{i}.delta.decay.bias"},
          {"model.layers.{i}.linear_attn.A_log", "decoder.{i}.delta.rate"},
          {"model.layers.{i}.linear_attn.o_norm.weight", "decoder.{i}.delta.norm.weight"}} +
    olmo2_names();

const Names olmo_hybrid_in_memory = {
    {"model.layers.{i}.{input,post_attention}_layernorm.weight",
     "decoder.{i}.norm.{attention,ffn}.input.weight"},
    {"model.layers.{i}.linear_attn.conv1d.weight",
     "decoder.{i}.delta.{query_convolution+key_convolution+value_convolution}",
     Stored::column_convolution}};

}  // namespace

Names olmo2_names() {
  return with_decoder_heads(llama_attention_names()) +
         Names{{"model.layers.{i}.post_{attention,feedforward}_layernorm.weight",
                "decoder.{i}.norm.{attention,ffn}.output.weight"},
               {"model.layers.{i}.mlp.{gate,up,down}_proj.weight",
                "decoder.{i}.ffn.{gate,up,down}.weight"}};
}

const Family olmo2 = {"olmo2", decoder_architectures("Olmo2", "Olmo2ForCausalLM"), olmo2_config,
                      olmo2_names(), "model."};
const Family olmo3 = {"olmo3", decoder_architectures("Olmo3", "Olmo3ForCausalLM"), olmo3_config,
                      olmo2_names(), "model."};

const Family olmo_hybrid = {"olmo_hybrid",
                            language_models("OlmoHybrid"),
                            olmo_hybrid_config,
                            olmo_hybrid_names,
                            "model.",
                            {},
                            olmo_hybrid_in_memory};

}  // namespace fovea::model
