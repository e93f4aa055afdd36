#include "families/bert.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Reads or writes feed_forward_proj: relu, gated-silu, or gated-gelu, whose activation transformers
// calls gelu_new.
void feed_forward(Config& io, FeedForwardSpec& ffn, const std::string& absent) {
  const std::string relu = "relu", gated_gelu = "gated-gelu", gated_silu = "gated-silu";
  if (!io.reading()) {
    const bool gelu = ffn.activation == Activation::gelu_tanh;
    return io.write("feed_forward_proj", !ffn.gated ? relu : gelu ? gated_gelu : gated_silu);
  }
  const auto given = io.value("feed_forward_proj");
  const std::string name = given.is_string() ? given.get<std::string>() : absent;
  if (name != relu && name != gated_gelu && name != gated_silu)
    io.only("feed_forward_proj", gated_gelu);
  ffn.gated = name != relu;
  ffn.activation = name == relu         ? Activation::relu
                   : name == gated_gelu ? Activation::gelu_tanh
                                        : Activation::silu;
  // Some files also contain these derived keys, which would take precedence.
  io.only("dense_act_fn", name == relu ? "relu" : name == gated_gelu ? "gelu_new" : "silu");
  io.only("is_gated_act", ffn.gated);
}

// What T5 and its multilingual relatives share. The classes for vectors and for labels of tokens
// have the encoder alone. If it is `scaled`, the key scale_decoder_outputs says whether the head
// is.
void t5_common(Config& io, Spec& s, const std::string& ffn, bool scaled) {
  const bool alone = s.head.kind == HeadKind::token || s.head.kind == HeadKind::pooled;
  if (!s.encoder) s.encoder.emplace();
  if (alone && !io.reading()) s.decoder = s.encoder;
  StackSpec& d = *s.decoder;
  int64_t encoder_layers = s.encoder->layers, decoder_layers = d.layers;
  d.norm.kind = NormKind::rms;
  d.position = {.kind = PositionKind::none,
                .bias = DistanceBias::relative,
                .buckets = d.position.buckets,
                .distance = d.position.distance,
                .bias_by_layer = d.position.bias_by_layer};
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.attention.scale = 1;
  io("vocab_size", s.vocabulary);
  io("n_positions", s.context, 512);
  io("d_model", s.width);
  io("d_kv", d.attention.head_width);
  io("d_ff", d.ffn.width);
  io("num_layers", encoder_layers);
  io("num_decoder_layers", decoder_layers, encoder_layers);
  io("num_heads", d.attention.heads);
  io("relative_attention_num_buckets", d.position.buckets, 32);
  io("relative_attention_max_distance", d.position.distance, 128);
  io("dropout_rate", s.dropout.residual, 0.1f);
  s.dropout.embedding = s.dropout.attention = s.dropout.residual;
  io("layer_norm_epsilon", d.norm.epsilon, 1e-6f);
  feed_forward(io, d.ffn, ffn);
  tie_embeddings(io, s);
  if (scaled && s.head.kind == HeadKind::language_model)
    io("scale_decoder_outputs", s.head.scaled, s.head.tied);
  s.encoder = d;
  s.encoder->layers = encoder_layers;
  d.layers = decoder_layers;
  if (alone) s.decoder.reset();
  if (io.reading()) io.refuse_unknown({"output_past", "is_decoder", "scale_decoder_outputs"});
}

// T5 (Raffel et al. 2020), and its v1.1 with gated feed-forward layers.
void t5_config(Config& io, Spec& s) { t5_common(io, s, "relu", true); }

// mT5 (Xue et al. 2021), whose head has no scale.
void mt5_config(Config& io, Spec& s) { t5_common(io, s, "gated-gelu", false); }

// umT5 (Chung et al. 2023): each layer has its own position biases.
void umt5_config(Config& io, Spec& s) {
  s.decoder->position.bias_by_layer = true;
  t5_common(io, s, "gated-gelu", true);
}

bool is_gated(const Spec& s) { return s.encoder->ffn.gated; }
bool is_plain(const Spec& s) { return !s.encoder->ffn.gated; }

// Returns the names of a stack's tensors: layer 0 of a block is self-attention, layer `ffn` the
// feed-forward layer.
Names stack_names(const std::string& stack, const std::string& ffn) {
  const std::string block = stack + ".block.{i}.layer.", ours = stack + ".{i}.";
  return {
      {block + "0.SelfAttention.{q,k,v,o}.weight",
       ours + "attention.{query,key,value,output}.weight"},
      {stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight", stack + ".distance",
       Stored::transposed},
      {block + "0.SelfAttention.relative_attention_bias.weight", ours + "distance",
       Stored::transposed},
      {block + "0.layer_norm.weight", ours + "norm.attention.input.weight"},
      {block + ffn + ".DenseReluDense.wi.weight", ours + "ffn.up.weight", Stored::plain, is_plain},
      {block + ffn + ".DenseReluDense.wi_{0,1}.weight", ours + "ffn.{gate,up}.weight",
       Stored::plain, is_gated},
      {block + ffn + ".DenseReluDense.wo.weight", ours + "ffn.down.weight"},
      {block + ffn + ".layer_norm.weight", ours + "norm.ffn.input.weight"},
      {stack + ".final_layer_norm.weight", stack + ".norm.final.weight"},
  };
}

const Names t5_names =
    stack_names("encoder", "1") + stack_names("decoder", "2") +
    Names{{"shared.weight", "embedding.token"},
          {"decoder.block.{i}.layer.1.EncDecAttention.{q,k,v,o}.weight",
           "decoder.{i}.cross.{query,key,value,output}.weight"},
          {"decoder.block.{i}.layer.1.layer_norm.weight", "decoder.{i}.norm.cross.input.weight"},
          {"lm_head.weight", "head.output.weight"},
          {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"},
          {"classifier.{weight,bias}", "tagger.output.{weight,bias}"}} +
    names_of_head_of_end();

Family like_t5(const char* model_type, const std::string& stem,
               void (*config)(Config& io, Spec& spec)) {
  return {model_type,
          {{stem + "ForConditionalGeneration", {}},
           {stem + "ForSequenceClassification", head_of_end(2)},
           {stem + "ForTokenClassification", labels_of_each()},
           {stem + "EncoderModel", {.kind = HeadKind::pooled, .pooling = Pooling::mean}},
           {stem + "ForQuestionAnswering", answer_span()}},
          config,
          t5_names,
          "transformer.",
          {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
           "layer.1.EncDecAttention.relative_attention_bias.weight"},
          {},
          false,
          "classif"};  // classification_head. and classifier.
}

}  // namespace

const Family t5 = like_t5("t5", "T5", t5_config);
const Family mt5 = like_t5("mt5", "MT5", mt5_config);
const Family umt5 = like_t5("umt5", "UMT5", umt5_config);

}  // namespace fovea::model
