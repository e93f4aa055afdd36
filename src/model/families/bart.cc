#include "families/bart.h"

#include "families/bert.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {

void bart_sizes(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  StackSpec &d = *s.decoder, e = *s.encoder;
  io("vocab_size", s.vocabulary);
  io.padding(s, 1);
  io("d_model", s.width);
  io("encoder_layers", e.layers);
  io("decoder_layers", d.layers);
  io("encoder_attention_heads", e.attention.heads);
  io("decoder_attention_heads", d.attention.heads);
  io("encoder_ffn_dim", e.ffn.width);
  io("decoder_ffn_dim", d.ffn.width);
  io("activation_function", d.ffn.activation, "gelu");
  io("dropout", s.dropout.residual, 0.1f);
  s.dropout.embedding = s.dropout.residual;
  io("attention_dropout", s.dropout.attention, 0);
  io("init_std", s.init_deviation, 0.02f);
  io("scale_embedding", s.scaled_embedding, false);
  tie_embeddings(io, s);
  s.encoder = d;
  s.encoder->layers = e.layers;
  s.encoder->attention.heads = e.attention.heads;
  s.encoder->attention.kv_heads = e.attention.kv_heads;
  s.encoder->attention.head_width = e.attention.head_width;
  s.encoder->ffn.width = e.ffn.width;
}

namespace {

// BART (Lewis et al. 2020). Its learned positions begin at row 2.
void bart_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position = {.kind = PositionKind::learned, .offset = 2};
  d.placement = {false, false, true};
  d.embedding_norm = true;
  d.final_norm = false;
  bart_sizes(io, s);
  io("max_position_embeddings", s.context, 1024);
  for (const char* key : {"normalize_before", "add_final_layer_norm", "static_position_embeddings",
                          "extra_pos_embeddings_none"})
    io.only(key, false);
  io.only("normalize_embedding", true);
  io.only("add_bias_logits", false);
  io.only("is_decoder", false);
  if (io.reading())
    io.refuse_unknown({"num_hidden_layers", "extra_pos_embeddings",
                       "force_bos_token_to_be_generated", "classif_dropout",
                       "gradient_checkpointing", "prefix", "num_beam_groups"});
}

}  // namespace

Names bart_stack_names(const std::string& stack) {
  const std::string layer = "model." + stack + ".layers.{i}.", ours = stack + ".{i}.";
  Names names = {
      {layer + "self_attn.{q,k,v,out}_proj.{weight,bias}",
       ours + "attention.{query,key,value,output}.{weight,bias}"},
      {layer + "encoder_attn.{q,k,v,out}_proj.{weight,bias}",
       ours + "cross.{query,key,value,output}.{weight,bias}"},
      {layer + "fc{1,2}.{weight,bias}", ours + "ffn.{up,down}.{weight,bias}"},
      {"model." + stack + ".embed_positions.weight", stack + ".position"},
      {"model." + stack + ".layernorm_embedding.{weight,bias}",
       stack + ".norm.embedding.{weight,bias}"},
      {"model." + stack + ".layer_norm.{weight,bias}", stack + ".norm.final.{weight,bias}"},
  };
  for (const char* placement : {"sum", "input"}) {
    names.push_back({layer + "{self_attn,encoder_attn,final}_layer_norm.{weight,bias}",
                     ours + "norm.{attention,cross,ffn}." + placement + ".{weight,bias}"});
  }
  return names;
}

const Family bart = {"bart",
                     {{"BartForConditionalGeneration", {.bias = true}},
                      {"BartForSequenceClassification", head_of_end(3)},
                      {"BartForQuestionAnswering", answer_span()}},
                     bart_config,
                     bart_stack_names("encoder") + bart_stack_names("decoder") +
                         Names{{"model.shared.weight", "embedding.token"},
                               {"final_logits_bias", "head.output.bias", Stored::batched},
                               {"lm_head.weight", "head.output.weight"},
                               {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"}} +
                         names_of_head_of_end(),
                     "model.",
                     {".embed_tokens.weight"}};

}  // namespace fovea::model
