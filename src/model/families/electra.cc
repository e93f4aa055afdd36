#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// ELECTRA (Clark et al. 2020): BERT whose embeddings may have a width of their own, and a head that
// tells for each token whether it was replaced.
void electra_config(Config& io, Spec& s) {
  bert_shape(s);
  io.padding(s, 0);
  bert_sizes(io, s);
  embedding_width(io, s, "embedding_size", 128);
  io("max_position_embeddings", s.context, 512);
  io("type_vocab_size", s.token_types, 2);
  io.only("position_embedding_type", "absolute");
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (!io.reading()) return;
  if (s.head.kind == HeadKind::language_model) s.head.activation = Activation::gelu;
  if (s.head.kind == HeadKind::token && s.head.transform) {
    s.head.labels = 1;  // whatever names of labels the file has
    s.head.activation = s.encoder->ffn.activation;
  }
  // The summary is a part of the class for multiple choice.
  io.refuse_unknown(
      {"summary_type", "summary_use_proj", "summary_activation", "summary_last_dropout"});
}

const Names electra_names =
    bert_encoder_names("electra.") +
    Names{
        {"electra.embeddings_project.{weight,bias}", "encoder.projection.{weight,bias}"},
        {"generator_predictions.{dense,LayerNorm}.{weight,bias}",
         "head.{transform,norm}.{weight,bias}"},
        {"generator_lm_head.{weight,bias}", "head.output.{weight,bias}"},
        {"discriminator_predictions.{dense,dense_prediction}.{weight,bias}",
         "detector.{transform,output}.{weight,bias}"},
        {"classifier.{dense,out_proj}.{weight,bias}", "sequence.{transform,output}.{weight,bias}"}};

HeadSpec detection_head() {
  return {.kind = HeadKind::token, .labels = 1, .bias = true, .transform = true};
}

}  // namespace

const Family electra = {"electra",
                        {{"ElectraForMaskedLM", masked_language_model()},
                         {"ElectraModel", {.kind = HeadKind::pooled}},
                         {"ElectraForSequenceClassification", labels_of_first(Activation::gelu)},
                         {"ElectraForTokenClassification", labels_of_each()},
                         {"ElectraForPreTraining", detection_head()},
                         {"ElectraForQuestionAnswering", answer_span()}},
                        electra_config,
                        electra_names,
                        "electra.",
                        {".position_ids"}};

}  // namespace fovea::model
