#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// RoFormer (Su et al. 2021): BERT with rotary positions, whose table the file has, and embeddings
// that may have a width of their own.
void roformer_config(Config& io, Spec& s) {
  rotary_bert_shape(s);
  s.encoder->position.rotary.neighbours = true;
  s.encoder->position.stored = true;
  io.padding(s, 0);
  bert_sizes(io, s);
  embedding_width(io, s, "embedding_size", s.width);
  io("max_position_embeddings", s.context, 1536);
  io("type_vocab_size", s.token_types, 2);
  if (s.head.kind == HeadKind::sequence) s.head.activation = s.encoder->ffn.activation;
  io.only("rotary_value", false);
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (io.reading()) io.refuse_unknown({});
}

const Names roformer_names =
    Names{{"roformer.encoder.embed_positions.weight", "encoder.position"}} +
    bert_encoder_names("roformer.") +
    Names{
        {"roformer.embeddings_project.{weight,bias}", "encoder.projection.{weight,bias}"},
        {"classifier.{dense,out_proj}.{weight,bias}", "sequence.{transform,output}.{weight,bias}"},
        {"cls.predictions.transform.{dense,LayerNorm}.{weight,bias}",
         "head.{transform,norm}.{weight,bias}"}} +
    masked_output_names("cls.predictions.");

}  // namespace

const Family roformer = {"roformer",
                         {{"RoFormerForMaskedLM", masked_language_model()},
                          {"RoFormerModel", {.kind = HeadKind::pooled}},
                          {"RoFormerForSequenceClassification", labels_of_first(Activation::gelu)},
                          {"RoFormerForTokenClassification", labels_of_each()},
                          {"RoFormerForQuestionAnswering", answer_span()}},
                         roformer_config,
                         roformer_names,
                         "roformer.",
                         {"cls.predictions.bias", "cls.predictions.decoder.bias"}};

}  // namespace fovea::model
