#include "families/bert.h"
#include "families/registry.h"
#include "transformer/transformer.h"

namespace fovea::model {
namespace {

// RemBERT (Chung et al. 2021): BERT with narrow embeddings and a separate, wider output matrix.
void rembert_config(Config& io, Spec& s) {
  bert_shape(s);
  io.padding(s, 0);
  bert_sizes(io, s, {.dropout = 0, .attention_dropout = 0});
  s.head.tied = false;  // whatever the key says: the matrices have different widths
  projected_embedding_width(io, s, "input_embedding_size", 256);
  int64_t& outputs = s.head.transform_width;
  int64_t width = outputs > 0 ? outputs : embedding_width_of(s);
  io("output_embedding_size", width, 1664);
  outputs = width;
  io("max_position_embeddings", s.context, 512);
  io("type_vocab_size", s.token_types, 2);
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (io.reading()) io.refuse_unknown({"classifier_dropout_prob"});
}

const Names rembert_names =
    bert_encoder_names("rembert.") +
    Names{{"rembert.encoder.embedding_hidden_mapping_in.{weight,bias}",
           "encoder.projection.{weight,bias}"},
          {"rembert.pooler.dense.{weight,bias}", "sequence.transform.{weight,bias}"},
          {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
          {"cls.predictions.{dense,LayerNorm,decoder}.{weight,bias}",
           "head.{transform,norm,output}.{weight,bias}"}};

}  // namespace

const Family rembert = {
    "rembert",
    {{"RemBertForMaskedLM", masked_language_model()},
     {"RemBertModel", pooled_first()},
     {"RemBertForSequenceClassification", labels_of_first(Activation::tanh)},
     {"RemBertForTokenClassification", labels_of_each()},
     {"RemBertForQuestionAnswering", answer_span()}},
    rembert_config,
    rembert_names,
    "rembert.",
    {".position_ids", "rembert.pooler.dense.weight", "rembert.pooler.dense.bias"}};

}  // namespace fovea::model
