#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// MPNet (Song et al. 2020): BERT without token types, with relative position biases in addition to
// the learned positions, which start after row 1.
void mpnet_config(Config& io, Spec& s) {
  bert_shape(s);
  PositionSpec& position = s.encoder->position;
  position.bias = DistanceBias::relative;
  bert_sizes(io, s);
  s.padding = 1;  // independent of pad_token_id
  positions_after_padding(io, s, 1);
  io("relative_attention_num_buckets", position.buckets, 32);
  if (io.reading()) io.refuse_unknown({});
}

const Names mpnet_names =
    masked_output_names("lm_head.") +
    Names{
        {"mpnet.embeddings.{word,position}_embeddings.weight",
         "{embedding.token,encoder.position}"},
        {"mpnet.embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
        {"mpnet.encoder.relative_attention_bias.weight", "encoder.distance", Stored::transposed},
        {"mpnet.encoder.layer.{i}.attention.attn.{q,k,v,o}.{weight,bias}",
         "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
        {"mpnet.encoder.layer.{i}.{attention,output}.LayerNorm.{weight,bias}",
         "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
        {"mpnet.encoder.layer.{i}.{intermediate,output}.dense.{weight,bias}",
         "encoder.{i}.ffn.{up,down}.{weight,bias}"},
        {"mpnet.pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
        {"lm_head.{dense,layer_norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"},
        {"classifier.{dense,out_proj}.{weight,bias}", "sequence.{transform,output}.{weight,bias}"},
        {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
        {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"},
    };

}  // namespace

const Family mpnet = {"mpnet",
                      {{"MPNetForMaskedLM", masked_language_model()},
                       {"MPNetModel", pooled_first()},
                       {"MPNetForSequenceClassification", labels_of_first(Activation::tanh)},
                       {"MPNetForTokenClassification", labels_of_each()},
                       {"MPNetForQuestionAnswering", answer_span()}},
                      mpnet_config,
                      mpnet_names,
                      "mpnet.",
                      {".position_ids", "lm_head.bias", "lm_head.decoder.bias",
                       "mpnet.pooler.dense.weight", "mpnet.pooler.dense.bias"}};

}  // namespace fovea::model
