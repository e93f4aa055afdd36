#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// DistilBERT (Sanh et al. 2019): BERT without token types. sinusoidal_pos_embds only changes how
// the table of positions is initialised, and the checkpoint contains that table.
void distilbert_config(Config& io, Spec& s) {
  bert_shape(s);
  StackSpec& e = *s.encoder;
  e.norm.epsilon = 1e-12f;
  io("vocab_size", s.vocabulary);
  io.padding(s, 0);
  io("max_position_embeddings", s.context, 512);
  io("dim", s.width);
  io("n_layers", e.layers);
  io("n_heads", e.attention.heads);
  io("hidden_dim", e.ffn.width);
  io("activation", e.ffn.activation, "gelu");
  io("dropout", s.dropout.residual, 0.1f);
  io("attention_dropout", s.dropout.attention, 0.1f);
  s.dropout.embedding = s.dropout.residual;
  io("tie_word_embeddings", s.head.tied, true);
  if (s.head.kind == HeadKind::language_model) s.head.activation = e.ffn.activation;
  if (!io.reading()) return;
  io.refuse_unknown({"sinusoidal_pos_embds", "qa_dropout", "seq_classif_dropout", "tie_weights_"});
}

const Names distilbert_names = {
    {"distilbert.embeddings.{word,position}_embeddings.weight",
     "{embedding.token,encoder.position}"},
    {"distilbert.embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
    {"distilbert.transformer.layer.{i}.attention.{q,k,v,out}_lin.{weight,bias}",
     "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
    {"distilbert.transformer.layer.{i}.{sa,output}_layer_norm.{weight,bias}",
     "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
    {"distilbert.transformer.layer.{i}.ffn.lin{1,2}.{weight,bias}",
     "encoder.{i}.ffn.{up,down}.{weight,bias}"},
    {"vocab_{transform,layer_norm,projector}.{weight,bias}",
     "head.{transform,norm,output}.{weight,bias}"},
    {"{pre_classifier,classifier}.{weight,bias}", "sequence.{transform,output}.{weight,bias}"},
    {"{classifier,qa_outputs}.{weight,bias}", "{tagger,span}.output.{weight,bias}"},
};

}  // namespace

const Family distilbert = {
    "distilbert",
    {{"DistilBertForMaskedLM", masked_language_model()},
     {"DistilBertModel", {.kind = HeadKind::pooled}},
     {"DistilBertForSequenceClassification", labels_of_first(Activation::relu)},
     {"DistilBertForTokenClassification", labels_of_each()},
     {"DistilBertForQuestionAnswering", answer_span()}},
    distilbert_config,
    distilbert_names,
    "distilbert.",
    {".position_ids"}};

}  // namespace fovea::model
