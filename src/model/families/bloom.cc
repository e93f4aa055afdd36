#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// BLOOM (Le Scao et al. 2022): ALiBi, a norm on the embeddings, and query, key and value fused head
// by head.
void bloom_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  io("seq_length", s.context, 2048);
  io("hidden_size", s.width);
  io("n_layer", d.layers);
  io("n_head", d.attention.heads);
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("hidden_dropout", s.dropout.residual, 0);
  io("attention_dropout", s.dropout.attention, 0);
  io("tie_word_embeddings", s.head.tied, true);
  io.only("apply_residual_connection_post_layernorm", false);
  d.position = {.kind = PositionKind::none, .bias = DistanceBias::alibi};
  d.embedding_norm = true;
  d.ffn.activation = Activation::gelu_tanh;
  d.ffn.width = 4 * s.width;
  if (io.reading())
    io.refuse_unknown({"slow_but_exact", "n_embed", "offset_alibi", "skip_bias_add",
                       "skip_bias_add_qkv", "attention_softmax_in_fp32", "masked_softmax_fusion",
                       "unk_token_id"});
}

const Names bloom_names =
    with_decoder_heads({{"transformer.word_embeddings.weight", "embedding.token"},
                        {"transformer.word_embeddings_layernorm.{weight,bias}",
                         "decoder.norm.embedding.{weight,bias}"},
                        {"transformer.h.{i}.self_attention.query_key_value.{weight,bias}",
                         "decoder.{i}.attention.{query+key+value}.{weight,bias}", Stored::by_head},
                        {"transformer.h.{i}.self_attention.dense.{weight,bias}",
                         "decoder.{i}.attention.output.{weight,bias}"},
                        {"transformer.h.{i}.{input,post_attention}_layernorm.{weight,bias}",
                         "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
                        {"transformer.h.{i}.mlp.dense_{h_to_4h,4h_to_h}.{weight,bias}",
                         "decoder.{i}.ffn.{up,down}.{weight,bias}"},
                        {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
                        {"lm_head.weight", "head.output.weight"}},
                       "classifier");

}  // namespace

const Family bloom = {"bloom",
                      decoder_architectures("Bloom", "BloomForCausalLM"),
                      bloom_config,
                      bloom_names,
                      "transformer.",
                      {},
                      {{"score.{weight,bias}", "tagger.output.{weight,bias}"}}};

}  // namespace fovea::model
