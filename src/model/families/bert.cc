#include "families/bert.h"

#include "base/error.h"
#include "families/registry.h"

namespace fovea::model {

HeadSpec masked_language_model() {
  return {.bias = true, .transform = true, .transform_norm = true};
}
HeadSpec labels_of_first(Activation activation) {
  return {.kind = HeadKind::sequence,
          .labels = 2,
          .bias = true,
          .transform = true,
          .activation = activation};
}
HeadSpec labels_of_each() { return {.kind = HeadKind::token, .labels = 2, .bias = true}; }
HeadSpec pooled_first() {
  return {.kind = HeadKind::pooled, .transform = true, .activation = Activation::tanh};
}
HeadSpec answer_span() { return {.kind = HeadKind::span, .labels = 2, .bias = true}; }

void bert_shape(Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  e.position.kind = PositionKind::learned;
  e.placement = {false, false, true};
  e.embedding_norm = true;
  e.final_norm = false;
}

void rotary_bert_shape(Spec& s) {
  bert_shape(s);
  s.encoder->position.kind = PositionKind::rotary;
}

void bert_sizes(Config& io, Spec& s, const BertDefaults& defaults) {
  StackSpec& e = *s.encoder;
  io("vocab_size", s.vocabulary);
  io("hidden_size", s.width);
  io("num_hidden_layers", e.layers);
  io("num_attention_heads", e.attention.heads);
  io("intermediate_size", e.ffn.width);
  io("hidden_act", e.ffn.activation, defaults.activation);
  io("layer_norm_eps", e.norm.epsilon, defaults.epsilon);
  io("hidden_dropout_prob", s.dropout.residual, defaults.dropout);
  io("attention_probs_dropout_prob", s.dropout.attention, defaults.attention_dropout);
  s.dropout.embedding = s.dropout.residual;
  io("tie_word_embeddings", s.head.tied, true);
  if (s.head.kind == HeadKind::language_model) s.head.activation = e.ffn.activation;
}

void embedding_width(Config& io, Spec& s, const char* key, int64_t absent) {
  int64_t width = embedding_width_of(s);
  io(key, width, absent);
  s.embedding_width = width == s.width ? 0 : width;
}

void projected_embedding_width(Config& io, Spec& s, const char* key, int64_t absent) {
  embedding_width(io, s, key, absent);
  if (s.embedding_width == 0)
    fail(ErrorKind::Unsupported, "{}: {} is {}, as hidden_size; expected another width", io.name(),
         key, s.width);
}

void positions_after_padding(Config& io, Spec& s, int64_t padding) {
  int64_t& offset = s.encoder->position.offset;
  int64_t rows = s.context + offset;
  if (io.reading()) offset = padding + 1;
  io("max_position_embeddings", rows, 514);
  s.context = rows - offset;
}

Names bert_encoder_names(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {
      {prefix + "embeddings.{word,token_type}_embeddings.weight", "embedding.{token,type}"},
      {prefix + "embeddings.position_embeddings.weight", "encoder.position"},
      {prefix + "embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
      {layer + "attention.self.{query,key,value}.{weight,bias}",
       "encoder.{i}.attention.{query,key,value}.{weight,bias}"},
      {layer + "attention.output.dense.{weight,bias}",
       "encoder.{i}.attention.output.{weight,bias}"},
      {layer + "attention.output.LayerNorm.{weight,bias}",
       "encoder.{i}.norm.attention.sum.{weight,bias}"},
      {layer + "{intermediate,output}.dense.{weight,bias}",
       "encoder.{i}.ffn.{up,down}.{weight,bias}"},
      {layer + "output.LayerNorm.{weight,bias}", "encoder.{i}.norm.ffn.sum.{weight,bias}"},
      {prefix + "pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
      {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
      {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"},
  };
}

Names rotary_bert_in_memory(const std::string& prefix) {
  const std::string layer = prefix + "layers.{i}.";
  return {{prefix + "embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
          {layer + "self_attn.{q,k,v,o}_proj.{weight,bias}",
           "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
          {layer + "post_{attention,mlp}_layernorm.{weight,bias}",
           "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"}};
}

Names masked_output_names(const std::string& stem) {
  return {{stem + "decoder.bias", "head.output.bias", Stored::plain,
           [](const Spec& spec) { return !spec.head.tied; }},
          {stem + "bias", "head.output.bias"},
          {stem + "decoder.weight", "head.output.weight"}};
}

namespace {

// BERT (Devlin et al. 2019).
void bert_config(Config& io, Spec& s) {
  bert_shape(s);
  io.padding(s, 0);
  bert_sizes(io, s);
  io("max_position_embeddings", s.context, 512);
  io("type_vocab_size", s.token_types, 2);
  io.only("position_embedding_type", "absolute");
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (io.reading())
    io.refuse_unknown({"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
                       "pooler_size_per_head", "pooler_type", "directionality"});
}

const Names bert_names =
    bert_encoder_names("bert.") +
    Names{{"bert.pooler.dense.{weight,bias}", "sequence.transform.{weight,bias}"},
          {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
          {"cls.predictions.transform.{dense,LayerNorm}.{weight,bias}",
           "head.{transform,norm}.{weight,bias}"}} +
    masked_output_names("cls.predictions.");

}  // namespace

const Family bert = {
    "bert",
    {{"BertForMaskedLM", masked_language_model()},
     {"BertForPreTraining", masked_language_model()},
     {"BertModel", pooled_first()},
     {"BertForSequenceClassification", labels_of_first(Activation::tanh)},
     {"BertForTokenClassification", labels_of_each()},
     {"BertForQuestionAnswering", answer_span()},
     {"HF_ColBERT", pooled_first()}},  // its projection is a module of embed/multi_vector_model.h
    bert_config,
    bert_names,
    "bert.",
    {".position_ids", "cls.predictions.bias", "cls.predictions.decoder.bias",
     "bert.pooler.dense.weight", "bert.pooler.dense.bias", "cls.seq_relationship.weight",
     "cls.seq_relationship.bias", "linear.weight"}};

}  // namespace fovea::model
