#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// OPT (Zhang et al. 2022). Its learned positions begin at row 2.
void opt_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  bool before = d.placement.input, bias = d.attention.bias;
  io("vocab_size", s.vocabulary);
  io.padding(s, 1);
  io("max_position_embeddings", s.context, 2048);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("num_attention_heads", d.attention.heads);
  io("ffn_dim", d.ffn.width);
  io("activation_function", d.ffn.activation, "relu");
  io("do_layer_norm_before", before, true);
  io("enable_bias", bias, true);
  io("dropout", s.dropout.residual, 0.1f);
  io("attention_dropout", s.dropout.attention, 0);
  io("tie_word_embeddings", s.head.tied, true);
  io.only("layer_norm_elementwise_affine", true);
  io.only("_remove_final_layer_norm", false);
  io.only("word_embed_proj_dim", s.width);
  s.dropout.embedding = s.dropout.residual;
  d.position = {.kind = PositionKind::learned, .offset = 2};
  d.placement = {before, false, !before};
  d.final_norm = before;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = bias;
  if (io.reading()) io.refuse_unknown({});
}

const Names opt_names = with_decoder_heads(
    {{"model.decoder.embed_{tokens,positions}.weight", "{embedding.token,decoder.position}"},
     {"model.decoder.layers.{i}.self_attn.{q,k,v,out}_proj.{weight,bias}",
      "decoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
     {"model.decoder.layers.{i}.{self_attn,final}_layer_norm.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
     {"model.decoder.layers.{i}.{self_attn,final}_layer_norm.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
     {"model.decoder.layers.{i}.fc{1,2}.{weight,bias}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"model.decoder.final_layer_norm.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"lm_head.weight", "head.output.weight"}});

}  // namespace

const Family opt = {"opt", decoder_architectures("OPT", "OPTForCausalLM"), opt_config, opt_names,
                    "model."};

}  // namespace fovea::model
