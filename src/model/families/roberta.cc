#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// RoBERTa (Liu et al. 2019): BERT with positions that start after the padding row.
void roberta_config(Config& io, Spec& s) {
  bert_shape(s);
  bert_sizes(io, s, 1e-12f);
  io.padding(s, 1);
  positions_after_padding(io, s, s.padding);
  io("type_vocab_size", s.token_types, 2);
  io.only("position_embedding_type", "absolute");
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (io.reading()) io.refuse_unknown({});
}

const Names roberta_names =
    bert_encoder_names("roberta.") +
    Names{
        {"classifier.{dense,out_proj}.{weight,bias}", "sequence.{transform,output}.{weight,bias}"},
        {"lm_head.{dense,layer_norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"},
        {"lm_head.bias", "head.output.bias"},
        {"lm_head.decoder.weight", "head.output.weight"}};

// A family of this model_type with the classes STEMModel, STEMForMaskedLM and so on.
Family roberta_family(const char* model_type, const std::string& stem) {
  return {model_type,
          {{stem + "ForMaskedLM", masked_language_model()},
           {stem + "Model", pooled_first()},
           {stem + "ForSequenceClassification", labels_of_first(Activation::tanh)},
           {stem + "ForTokenClassification", labels_of_each()},
           {stem + "ForQuestionAnswering", answer_span()}},
          roberta_config,
          roberta_names,
          "roberta.",
          {".position_ids", "lm_head.decoder.bias", "roberta.pooler.dense.weight",
           "roberta.pooler.dense.bias"}};
}

}  // namespace

const Family roberta = roberta_family("roberta", "Roberta");
// XLM-RoBERTa (Conneau et al. 2020).
const Family xlm_roberta = roberta_family("xlm-roberta", "XLMRoberta");

}  // namespace fovea::model
