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
  modernbert_sizes(io, s, d);
  if (s.head.transform) {
    io("classifier_bias", s.head.transform_bias, false);
    io("classifier_activation", s.head.activation, "gelu");
    if (!words) s.head.bias = s.head.transform_bias;
  }
  if (words) io("decoder_bias", s.head.bias, true);
  modernbert_rope(io, s, d);
  int64_t seen = 128;  // twice the window
  for (const int64_t w : d.attention.windows) seen = w > 0 ? 2 * w : seen;
  io("local_attention", seen, 128);
  io.layer_types(d, seen / 2, modernbert_pattern(io));
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
