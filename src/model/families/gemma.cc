#include <cmath>

#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Gemma 2 and 3 (Gemma Team 2024, 2025): norms on both sides of a sublayer, with gains of 1 + w,
// and local layers between global ones.
void common(Config& io, Spec& s, const LlamaDefaults& defaults) {
  StackSpec& d = *s.decoder;
  d.norm.unit_offset = true;
  d.placement = {true, true, false};
  s.scaled_embedding = true;
  llama_sizes(io, s, defaults);
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  // The scores' scale is 1 / sqrt(query_pre_attn_scalar).
  float scalar = d.attention.scale > 0 ? std::round(1 / (d.attention.scale * d.attention.scale))
                                       : static_cast<float>(d.attention.head_width);
  io("query_pre_attn_scalar", scalar, 256, 1e6f);
  if (!io.reading()) io.write("query_pre_attn_scalar", std::llround(scalar));  // it must be whole
  d.attention.scale = 1 / std::sqrt(scalar);
}

// In transformers, null means no soft cap; 0 would be applied as a cap.
void softcap(Config& io, const char* key, float& field) {
  if (!io.reading() && field == 0) return io.write(key, nullptr);
  io(key, field, 0, 1e6f);
}

// Only the logits of a language model have a cap; those of classifiers do not.
void final_softcap(Config& io, HeadSpec& head) {
  float none = 0;
  softcap(io, "final_logit_softcapping",
          head.kind == HeadKind::language_model ? head.softcap : none);
}

// The key counts the keys of both directions together, if a token sees both.
void windows(Config& io, StackSpec& d, const std::vector<bool>& pattern) {
  int64_t seen = 4096;
  for (const int64_t w : d.attention.windows)
    if (w > 0) seen = d.causal ? w : 2 * (w - 1);
  io("sliding_window", seen, 4096);
  io.layer_types(d, d.causal ? seen : seen / 2 + 1, pattern);
}

// Gemma (Gemma Team 2024): LLaMA with gains of 1 + w and scaled embeddings. Its first files call
// the tanh approximation of GELU gelu.
void gemma_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.norm.unit_offset = true;
  s.scaled_embedding = true;
  llama_sizes(io, s, {.activation = "gelu_pytorch_tanh", .tied = true, .head_width = 256});
  if (io.reading() && d.ffn.activation == Activation::gelu)
    d.ffn.activation = Activation::gelu_tanh;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io.only("use_bidirectional_attention", false);
  if (io.reading()) io.refuse_unknown({"hidden_activation"});
}

void gemma2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  common(io, s,
         {.activation_key = "hidden_activation",
          .activation = "gelu_pytorch_tanh",
          .tied = true,
          .head_width = 256});
  softcap(io, "attn_logit_softcapping", d.attention.softcap);
  final_softcap(io, s.head);
  windows(io, d, {true, false});
  io.only("use_bidirectional_attention", false);
  if (io.reading()) io.refuse_unknown({"hidden_act"});
}

void gemma3_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.attention.norm = QueryKeyNorm::head;
  if (io.reading()) {
    const auto theta = io.value("rope_local_base_freq");
    d.position.rotary.local_theta = theta.is_number() ? theta.get<float>() : 10000.0f;
  }
  common(io, s,
         {.theta = 1e6f,
          .activation_key = "hidden_activation",
          .activation = "gelu_pytorch_tanh",
          .tied = true,
          .rope_by_layer_type = true,
          .head_width = 256});
  final_softcap(io, s.head);
  const auto period = io.value("sliding_window_pattern");
  std::vector<bool> pattern(period.is_number_integer() && period > 0 ? period.get<size_t>() : 6,
                            true);
  pattern.back() = false;
  bool bidirectional = !d.causal;  // as in EmbeddingGemma
  io("use_bidirectional_attention", bidirectional, false);
  d.causal = !bidirectional;
  windows(io, d, pattern);
  if (io.reading())
    // The class has attn_logit_softcapping too, but its attention does not apply it.
    io.refuse_unknown({"hidden_act", "attn_logit_softcapping", "_sliding_window_pattern"});
}

const Names gemma_names = with_decoder_heads(llama_attention_names()) +
                          Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
                                 "decoder.{i}.norm.attention.{input,output}.weight"},
                                {"model.layers.{i}.{pre,post}_feedforward_layernorm.weight",
                                 "decoder.{i}.norm.ffn.{input,output}.weight"},
                                {"model.layers.{i}.mlp.{gate,up,down}_proj.{weight,bias}",
                                 "decoder.{i}.ffn.{gate,up,down}.{weight,bias}"}};

}  // namespace

const Family gemma = {"gemma", decoder_architectures("Gemma", "GemmaForCausalLM"), gemma_config,
                      llama_names(), "model."};
const Family gemma2 = {"gemma2", decoder_architectures("Gemma2", "Gemma2ForCausalLM"),
                       gemma2_config, gemma_names, "model."};
const Family gemma3 = {"gemma3_text", decoder_architectures("Gemma3Text", "Gemma3ForCausalLM"),
                       gemma3_config, gemma_names, "model."};

}  // namespace fovea::model
