#include "base/error.h"
#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// Reads or writes how a classifier pools: the first token, the mean of the tokens, or the mean of
// their outputs ("late"). Some files have the key of the model's own code.
void classifier_pooling(Config& io, HeadSpec& head) {
  const char* const key = "classifier_pooling";
  if (head.kind != HeadKind::sequence) return;
  if (!io.reading())
    return io.write(key, head.pooling == Pooling::first ? "bos"
                         : head.pool_transformed        ? "late"
                                                        : "mean");
  const nlohmann::json own = io.value("clf_pooling"), given = io.value(key);
  const nlohmann::json name = !given.is_null() ? given : own.is_null() ? "late" : own;
  if (name != "bos" && name != "mean" && name != "late")
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected bos, mean or late", io.name(), key,
         name.dump());
  head.pooling = name == "bos" ? Pooling::first : Pooling::mean;
  head.pool_transformed = name == "late";
}

// EuroBERT (Boizard et al. 2025): the layers of LLaMA in an encoder.
void eurobert_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  llama_sizes(io, s, {.epsilon = 1e-5f});
  io.padding(s, 128001);
  io("attention_bias", e.attention.bias, false);
  e.attention.output_bias = e.attention.bias;
  io("mlp_bias", e.ffn.bias, false);
  if (s.head.kind == HeadKind::language_model) s.head.bias = e.ffn.bias;
  classifier_pooling(io, s.head);
  if (io.reading())
    io.refuse_unknown(
        {"bos_token", "eos_token", "pad_token", "mask_token", "clf_pooling", "classifier_pooling"});
}

const Names eurobert_names = {{"model.embed_tokens.weight", "embedding.token"},
                              {"model.layers.{i}.self_attn.{q,k,v,o}_proj.{weight,bias}",
                               "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
                              {"model.layers.{i}.{input,post_attention}_layernorm.weight",
                               "encoder.{i}.norm.{attention,ffn}.input.weight"},
                              {"model.layers.{i}.mlp.{gate,up,down}_proj.{weight,bias}",
                               "encoder.{i}.ffn.{gate,up,down}.{weight,bias}"},
                              {"model.norm.weight", "encoder.norm.final.weight"},
                              {"lm_head.{weight,bias}", "head.output.{weight,bias}"},
                              {"dense.{weight,bias}", "sequence.transform.{weight,bias}"},
                              {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
                              {"classifier.{weight,bias}", "tagger.output.{weight,bias}"}};

HeadSpec labels_of_mean() {
  HeadSpec head = labels_of_first(Activation::gelu);
  head.pooling = Pooling::mean;
  head.pool_transformed = true;
  return head;
}

}  // namespace

const Family eurobert = {"eurobert",
                         {{"EuroBertForMaskedLM", {.tied = false}},
                          {"EuroBertModel", {.kind = HeadKind::pooled}},
                          {"EuroBertForSequenceClassification", labels_of_mean()},
                          {"EuroBertForTokenClassification", labels_of_each()}},
                         eurobert_config,
                         eurobert_names,
                         "model."};

}  // namespace fovea::model
