#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// The settings of attention are an object of their own.
void mpt_attention(Config& io, Spec& s) {
  if (!io.reading()) {
    nlohmann::ordered_json attention = {{"alibi", true}, {"attn_type", "multihead_attention"}};
    attention["attn_pdrop"] = 0;
    if (s.dropout.attention > 0) attention["attn_pdrop"] = s.dropout.attention;
    return io.write("attn_config", attention);
  }
  const nlohmann::json given = io.value("attn_config");
  const nlohmann::json none = nlohmann::json::object();
  Config attention(given.is_null() ? none : given, io.name() + ": attn_config");
  attention("attn_pdrop", s.dropout.attention, 0);
  s.dropout.residual = s.dropout.attention;
  attention.only("alibi", true);
  attention.only("alibi_bias_max", 8);
  attention.only("attn_type", "multihead_attention");
  attention.only("clip_qkv", nullptr);
  attention.only("prefix_lm", false);
  attention.only("qk_ln", false);
  attention.only("softmax_scale", nullptr);
}

// MPT (MosaicML 2023): ALiBi, LayerNorm without biases, and no other biases either. transformers
// ignores the other settings, such as expansion_ratio.
void mpt_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  io("max_seq_len", s.context, 2048);
  io("d_model", s.width);
  io("n_layers", d.layers);
  io("n_heads", d.attention.heads);
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("tie_word_embeddings", s.head.tied, true);
  io.only("no_bias", true);
  mpt_attention(io, s);
  d.position = {.kind = PositionKind::none, .bias = DistanceBias::alibi};
  d.norm.bias = d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.ffn.activation = Activation::gelu;
  d.ffn.width = 4 * s.width;
  if (io.reading())
    io.refuse_unknown({"emb_pdrop", "embedding_fraction", "expansion_ratio", "init_config",
                       "init_device", "learned_pos_emb", "norm_type", "tokenizer_name", "verbose"});
}

const Names mpt_names = with_decoder_heads(
    {{"transformer.wte.weight", "embedding.token"},
     {"transformer.blocks.{i}.attn.Wqkv.weight", "decoder.{i}.attention.{query+key+value}.weight"},
     {"transformer.blocks.{i}.attn.out_proj.weight", "decoder.{i}.attention.output.weight"},
     {"transformer.blocks.{i}.norm_{1,2}.weight", "decoder.{i}.norm.{attention,ffn}.input.weight"},
     {"transformer.blocks.{i}.ffn.{up,down}_proj.weight", "decoder.{i}.ffn.{up,down}.weight"},
     {"transformer.norm_f.weight", "decoder.norm.final.weight"},
     {"lm_head.weight", "head.output.weight"}},
    "classifier");

}  // namespace

const Family mpt = {"mpt", decoder_architectures("Mpt", "MptForCausalLM"), mpt_config, mpt_names,
                    "transformer."};

}  // namespace fovea::model
