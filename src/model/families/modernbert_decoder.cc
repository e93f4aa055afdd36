#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

HeadSpec modernbert_head(HeadSpec head) {
  head.transform = head.transform_norm = true;
  return head;
}

// Ettin's decoders (Weller et al. 2025): ModernBERT whose tokens see only earlier ones.
void modernbert_decoder_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  const bool words = s.head.kind == HeadKind::language_model;
  d.embedding_norm = true;
  d.first_norm = false;
  d.ffn.gated = true;
  d.position.kind = PositionKind::rotary;
  io("vocab_size", s.vocabulary);
  io.padding(s, 50283);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("num_attention_heads", d.attention.heads);
  io("intermediate_size", d.ffn.width);
  io("hidden_activation", d.ffn.activation, "gelu");
  io("norm_eps", d.norm.epsilon, 1e-5f);
  io("norm_bias", d.norm.bias, false);
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  io("attention_dropout", s.dropout.attention, 0);
  io("embedding_dropout", s.dropout.embedding, 0);
  io("mlp_dropout", s.dropout.residual, 0);
  io("tie_word_embeddings", s.head.tied, true);
  if (s.head.transform) {
    io("classifier_bias", s.head.transform_bias, false);
    io("classifier_activation", s.head.activation, "gelu");
    if (!words) s.head.bias = s.head.transform_bias;
  }
  if (words) io("decoder_bias", s.head.bias, true);
  RotarySpec& rotary = d.position.rotary;
  const auto theta = io.value("global_rope_theta"), local = io.value("local_rope_theta");
  if (io.reading()) rotary.local_theta = local.is_number() ? local.get<float>() : 10000.0f;
  io.rope(s.context, rotary,
          {.context = 8192,
           .theta = theta.is_number() ? theta.get<float>() : 160000.0f,
           .by_layer_type = true});
  int64_t seen = 128;  // twice the window
  for (const int64_t w : d.attention.windows) seen = w > 0 ? 2 * w : seen;
  io("local_attention", seen, 128);
  int64_t period = 3;
  if (io.reading()) io("global_attn_every_n_layers", period, 3);
  std::vector<bool> pattern(static_cast<size_t>(period), true);
  pattern.front() = false;
  io.layer_types(d, seen / 2, pattern);
  if (io.reading())
    io.refuse_unknown({"sliding_window", "classifier_bias", "classifier_activation", "decoder_bias",
                       "deterministic_flash_attn", "reference_compile", "repad_logits_with_grad",
                       "position_embedding_type", "layer_norm_eps"});
}

const Names modernbert_decoder_names = {
    {"model.embeddings.tok_embeddings.weight", "embedding.token"},
    {"model.embeddings.norm.{weight,bias}", "decoder.norm.embedding.{weight,bias}"},
    {"model.layers.{i}.attn.{q,k,v}_proj.{weight,bias}",
     "decoder.{i}.attention.{query,key,value}.{weight,bias}"},
    {"model.layers.{i}.attn.Wo.{weight,bias}", "decoder.{i}.attention.output.{weight,bias}"},
    {"model.layers.{i}.{attn,mlp}_norm.{weight,bias}",
     "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
    {"model.layers.{i}.mlp.Wi.{weight,bias}", "decoder.{i}.ffn.{gate+up}.{weight,bias}"},
    {"model.layers.{i}.mlp.Wo.{weight,bias}", "decoder.{i}.ffn.down.{weight,bias}"},
    {"model.final_norm.{weight,bias}", "decoder.norm.final.{weight,bias}"},
    {"lm_head.{dense,norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"},
    {"decoder.{weight,bias}", "head.output.{weight,bias}"},
    {"head.{dense,norm}.{weight,bias}", "sequence.{transform,norm}.{weight,bias}"},
    {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
};

}  // namespace

const Family modernbert_decoder = {
    "modernbert-decoder",
    {{"ModernBertDecoderForCausalLM", modernbert_head({.bias = true})},
     {"ModernBertDecoderForSequenceClassification",
      modernbert_head({.kind = HeadKind::sequence, .labels = 2, .pooling = Pooling::last})},
     {"ModernBertDecoderModel", {.kind = HeadKind::pooled, .pooling = Pooling::last}}},
    modernbert_decoder_config,
    modernbert_decoder_names,
    "model."};

}  // namespace fovea::model
