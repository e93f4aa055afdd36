#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// RoBERTa (Liu et al. 2019): BERT with positions that start after the padding row.
void roberta_config(Config& io, Spec& s) {
  bert_shape(s);
  bert_sizes(io, s);
  io.padding(s, 1);
  positions_after_padding(io, s, s.padding);
  io("type_vocab_size", s.token_types, 2);
  io.only("position_embedding_type", "absolute");
  io.only("is_decoder", false);
  io.only("add_cross_attention", false);
  if (io.reading()) io.refuse_unknown({});
}

// RoBERTa with norms on the inputs of the sublayers (Ott et al. 2019, "fairseq").
void prelayernorm_config(Config& io, Spec& s) {
  roberta_config(io, s);
  s.encoder->placement = {true, false, false};
  s.encoder->final_norm = true;
}

Names prelayernorm_names(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {{layer + "{attention,intermediate}.LayerNorm.{weight,bias}",
           "encoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
          {prefix + "LayerNorm.{weight,bias}", "encoder.norm.final.{weight,bias}"}};
}

}  // namespace

Names roberta_head_names() {
  return Names{
             {"classifier.{dense,out_proj}.{weight,bias}",
              "sequence.{transform,output}.{weight,bias}"},
             {"lm_head.{dense,layer_norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"}} +
         masked_output_names("lm_head.");
}

std::vector<Architecture> roberta_architectures(const std::string& stem) {
  return {{stem + "ForMaskedLM", masked_language_model()},
          {stem + "Model", pooled_first()},
          {stem + "ForSequenceClassification", labels_of_first(Activation::tanh)},
          {stem + "ForTokenClassification", labels_of_each()},
          {stem + "ForQuestionAnswering", answer_span()}};
}

namespace {

// A family of this model_type with the classes STEMModel, STEMForMaskedLM and so on.
Family roberta_family(const char* model_type, const std::string& stem,
                      const char* prefix = "roberta.",
                      void (*config)(Config&, Spec&) = roberta_config) {
  const std::string pooler = std::string(prefix) + "pooler.dense.";
  return {model_type,
          roberta_architectures(stem),
          config,
          bert_encoder_names(prefix) + prelayernorm_names(prefix) + roberta_head_names(),
          prefix,
          {".position_ids", "lm_head.bias", "lm_head.decoder.bias", pooler + "weight",
           pooler + "bias"}};
}

}  // namespace

const Family roberta = roberta_family("roberta", "Roberta");
// XLM-RoBERTa (Conneau et al. 2020) and CamemBERT (Martin et al. 2020).
const Family xlm_roberta = roberta_family("xlm-roberta", "XLMRoberta");
const Family camembert = roberta_family("camembert", "Camembert");
// Data2Vec's model of texts (Baevski et al. 2022).
const Family data2vec_text = roberta_family("data2vec-text", "Data2VecText", "data2vec_text.");
const Family roberta_prelayernorm = roberta_family("roberta-prelayernorm", "RobertaPreLayerNorm",
                                                   "roberta_prelayernorm.", prelayernorm_config);

}  // namespace fovea::model
