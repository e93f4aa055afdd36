#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// The first models have one key-value head and one norm for both parallel sublayers; the "new
// decoder architecture" has several, and two norms.
void falcon_layers(Config& io, StackSpec& d) {
  AttentionSpec& a = d.attention;
  bool grouped = d.parallel && (!d.one_norm || (a.kv_heads > 1 && a.kv_heads < a.heads));
  bool one_head = grouped || a.kv_heads == 1;
  int64_t kv_heads = a.kv_heads, norms = d.one_norm ? 1 : 2;
  io("new_decoder_architecture", grouped, false);
  io("multi_query", one_head, true);
  io("parallel_attn", d.parallel, true);
  if (io.reading() || grouped) io("num_kv_heads", kv_heads, a.heads);
  if (grouped) {
    io("num_ln_in_parallel_attn", norms, 2);
    io.only("parallel_attn", true);
  } else {
    io.only("num_ln_in_parallel_attn", 1);
    norms = 1;
  }
  a.kv_heads = grouped ? kv_heads : one_head ? 1 : a.heads;
  d.one_norm = d.parallel && norms == 1;
}

// Falcon (Almazrouei et al. 2023): parallel sublayers, rotary positions, and few key-value heads,
// whose queries, key and value are stored together.
void falcon_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("num_attention_heads", d.attention.heads);
  io("ffn_hidden_size", d.ffn.width, 0);
  io("activation", d.ffn.activation, "gelu");
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("bias", d.attention.bias, false);
  d.attention.output_bias = d.ffn.bias = d.attention.bias;
  io("hidden_dropout", s.dropout.residual, 0);
  io("attention_dropout", s.dropout.attention, 0);
  io("tie_word_embeddings", s.head.tied, true);
  falcon_layers(io, d);
  d.position.kind = PositionKind::rotary;
  io.rope(s.context, d.position.rotary, {});
  io.only("alibi", false);
  io.only("apply_residual_connection_post_layernorm", false);
  if (io.reading()) io.refuse_unknown({"ff_factor"});
}

bool has_two_norms(const Spec& s) { return s.decoder->parallel && !s.decoder->one_norm; }

const Names falcon_names = with_decoder_heads(
    {{"transformer.word_embeddings.weight", "embedding.token"},
     {"transformer.h.{i}.self_attention.query_key_value.{weight,bias}",
      "decoder.{i}.attention.{query+key+value}.{weight,bias}", Stored::by_head},
     {"transformer.h.{i}.self_attention.dense.{weight,bias}",
      "decoder.{i}.attention.output.{weight,bias}"},
     {"transformer.h.{i}.ln_{attn,mlp}.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}", Stored::plain, has_two_norms},
     {"transformer.h.{i}.{input,post_attention}_layernorm.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
     {"transformer.h.{i}.mlp.dense_{h_to_4h,4h_to_h}.{weight,bias}",
      "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"lm_head.weight", "head.output.weight"}},
    "classifier");

}  // namespace

const Family falcon = {"falcon", decoder_architectures("Falcon", "FalconForCausalLM"),
                       falcon_config, falcon_names, "transformer."};

}  // namespace fovea::model
