#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// Jina Embeddings 3 (Sturua et al. 2024): XLM-RoBERTa with rotary positions. Its adapters for tasks
// are directories of PEFT.
void jina_config(Config& io, Spec& s) {
  rotary_bert_shape(s);
  io.padding(s, 1);
  bert_sizes(io, s, {.epsilon = 1e-5f});
  io("type_vocab_size", s.token_types, 1);
  io.rope(s.context, s.encoder->position.rotary, {.context = 8194, .theta = 20000});
  if (io.reading()) io.refuse_unknown({});
}

const std::string kJina = "roberta.encoder.layers.{i}.";

const Names jina_names =
    roberta_head_names() +
    Names{{"roberta.embeddings.{word,token_type}_embeddings.weight", "embedding.{token,type}"},
          {"roberta.emb_ln.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
          {kJina + "mixer.Wqkv.{weight,bias}",
           "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
          {kJina + "mixer.out_proj.{weight,bias}", "encoder.{i}.attention.output.{weight,bias}"},
          {kJina + "norm{1,2}.{weight,bias}", "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
          {kJina + "mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
          {"roberta.pooler.dense.{weight,bias}", "pooler.transform.{weight,bias}"},
          {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
          {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"}};

const Names jina_in_memory =
    rotary_bert_in_memory("roberta.") + Names{{"roberta.layers.{i}.mlp.fc{1,2}.{weight,bias}",
                                               "encoder.{i}.ffn.{up,down}.{weight,bias}"}};

}  // namespace

const Family jina_embeddings_v3 = {"jina_embeddings_v3",
                                   roberta_architectures("JinaEmbeddingsV3"),
                                   jina_config,
                                   jina_names,
                                   "roberta.",
                                   {"lm_head.bias", "lm_head.decoder.bias",
                                    "roberta.pooler.dense.weight", "roberta.pooler.dense.bias"},
                                   jina_in_memory};

}  // namespace fovea::model
