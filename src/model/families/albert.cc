#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// ALBERT (Lan et al. 2020): BERT whose layers share their weights, with narrower embeddings.
void albert_config(Config& io, Spec& s) {
  bert_shape(s);
  StackSpec& e = *s.encoder;
  io.padding(s, 0);
  bert_sizes(io, s, {.activation = "gelu_new", .dropout = 0, .attention_dropout = 0});
  projected_embedding_width(io, s, "embedding_size", 128);
  io("max_position_embeddings", s.context, 512);
  io("type_vocab_size", s.token_types, 2);
  int64_t groups = e.layer_groups > 0 ? e.layer_groups : e.layers;
  io("num_hidden_groups", groups, 1);
  e.layer_groups = groups;
  io.only("inner_group_num", 1);
  io.only("position_embedding_type", "absolute");
  if (io.reading())
    io.refuse_unknown({"classifier_dropout_prob", "down_scale_factor", "gap_size",
                       "net_structure_type", "num_memory_blocks"});
}

const std::string kAlbert = "albert.encoder.albert_layer_groups.{i}.albert_layers.0.";

const Names albert_names =
    masked_output_names("predictions.") +
    Names{{"albert.embeddings.{word,token_type}_embeddings.weight", "embedding.{token,type}"},
          {"albert.embeddings.position_embeddings.weight", "encoder.position"},
          {"albert.embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
          {"albert.encoder.embedding_hidden_mapping_in.{weight,bias}",
           "encoder.projection.{weight,bias}"},
          {kAlbert + "attention.{query,key,value,dense}.{weight,bias}",
           "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
          {kAlbert + "{attention.LayerNorm,full_layer_layer_norm}.{weight,bias}",
           "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
          {kAlbert + "{ffn,ffn_output}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
          {"albert.pooler.{weight,bias}", "pooler.transform.{weight,bias}"},
          {"albert.pooler.{weight,bias}", "sequence.transform.{weight,bias}"},
          {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
          {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
          {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"},
          {"predictions.{dense,LayerNorm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"}};

}  // namespace

const Family albert = {
    "albert",
    {{"AlbertForMaskedLM", masked_language_model()},
     {"AlbertForPreTraining", masked_language_model()},
     {"AlbertModel", pooled_first()},
     {"AlbertForSequenceClassification", labels_of_first(Activation::tanh)},
     {"AlbertForTokenClassification", labels_of_each()},
     {"AlbertForQuestionAnswering", answer_span()}},
    albert_config,
    albert_names,
    "albert.",
    {".position_ids", "predictions.bias", "predictions.decoder.bias", "albert.pooler.weight",
     "albert.pooler.bias", "sop_classifier.classifier.weight", "sop_classifier.classifier.bias"}};

}  // namespace fovea::model
