#include "base/error.h"
#include "base/json.h"
#include "base/math.h"
#include "families/bert.h"
#include "families/registry.h"
#include "fovea/core/excerpt.h"

namespace fovea::model {
namespace {

// GTE (Zhang et al. 2024, "mGTE"): BERT with rotary positions and gated feed-forward layers.
void gte_shape(Spec& s) {
  rotary_bert_shape(s);
  FeedForwardSpec& ffn = s.encoder->ffn;
  ffn.gated = true;
  ffn.bias = true;
  ffn.inner_bias = false;
}

// Of the token types, a file may have none.
void gte_token_types(Config& io, Spec& s, int64_t absent) {
  const bool none = io.reading() ? io.value("type_vocab_size") == 0 : s.token_types == 0;
  if (!none) return io("type_vocab_size", s.token_types, absent);
  s.token_types = 0;
  io.write("type_vocab_size", 0);
}

void gte_config(Config& io, Spec& s) {
  gte_shape(s);
  io.padding(s, 1);
  bert_sizes(io, s, {.attention_dropout = 0});
  gte_token_types(io, s, 1);
  io.rope(s.context, s.encoder->position.rotary, {.context = 8192, .theta = 160000});
  if (io.reading()) io.refuse_unknown({});
}

// Reads rotary positions whose frequencies theta^(-2i / D) are divided by factor^((2i + 2) / D), as
// the model's own code does (https://kexue.fm/archives/9706): a larger theta, and a linear scaling.
void alibaba_rope(Config& io, Spec& s) {
  RotarySpec& rotary = s.encoder->position.rotary;
  const nlohmann::json scaling = io.value("rope_scaling");
  const bool ntk = scaling.is_object() && scaling.value("type", nlohmann::json()) == "ntk";
  if (!ntk) return io.rope(s.context, rotary, {});
  for (const auto& [key, value] : scaling.items())
    if (key != "type" && key != "factor" && !value.is_null())
      fail(ErrorKind::Unsupported,
           "{}: rope_scaling.{} is not known for type ntk; expected no such "
           "key",
           io.name(), excerpt(key));
  const nlohmann::json factor = scaling.value("factor", nlohmann::json());
  if (!factor.is_number() || factor < 1.0 || factor > 1024.0)
    fail(ErrorKind::BadFile, "{}: rope_scaling.factor is {}; expected a number from 1 to 1024",
         io.name(), brief(factor));
  io("max_position_embeddings", s.context, 2048);
  io("rope_theta", rotary.theta, 10000, 1e9f);
  const auto head_width =
      static_cast<double>(s.width) / static_cast<double>(s.encoder->attention.heads);
  rotary.theta *= factor.get<float>();
  rotary.scaling = RotaryScaling::linear;
  rotary.factor = static_cast<float>(math::pow(factor.get<double>(), 2 / head_width));
}

// The keys of the model's own code, whose directories are saved as those of GTE, which need no
// code.
void alibaba_config(Config& io, Spec& s) {
  if (!io.reading())
    fail(ErrorKind::Unsupported, "{}: only read; expected another family", alibaba_new.model_type);
  gte_shape(s);
  io.padding(s, -1);
  bert_sizes(io, s, {.attention_dropout = 0});
  gte_token_types(io, s, 1);
  alibaba_rope(io, s);
  io.only("position_embedding_type", "rope");
  io.only("layer_norm_type", "layer_norm");
  io.only("pack_qkv", true);
  io.only("logn_attention_scale", false);
  io.only("logn_attention_clip1", false);
  io.refuse_unknown({});
}

// `prefix` is that of the tensors of all classes but the bare model.
Names gte_names(const std::string& prefix) {
  const std::string layer = prefix + "encoder.layer.{i}.";
  return {
      {prefix + "embeddings.{word,token_type}_embeddings.weight", "embedding.{token,type}"},
      {prefix + "embeddings.LayerNorm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
      {layer + "attention.qkv_proj.{weight,bias}",
       "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
      {layer + "attention.o_proj.{weight,bias}", "encoder.{i}.attention.output.{weight,bias}"},
      {layer + "{attn,mlp}_ln.{weight,bias}", "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
      {layer + "mlp.up_gate_proj.weight", "encoder.{i}.ffn.{up+gate}.weight"},
      {layer + "mlp.down_proj.{weight,bias}", "encoder.{i}.ffn.down.{weight,bias}"},
      {prefix + "pooler.dense.{weight,bias}", "sequence.transform.{weight,bias}"},
      {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
      {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
      {"lm_head.{dense,norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"},
      {"lm_head.decoder.{weight,bias}", "head.output.{weight,bias}"}};
}

const Names gte_in_memory =
    rotary_bert_in_memory("gte.") +
    Names{{"gte.layers.{i}.mlp.{gate,up,down}_proj.{weight,bias}",
           "encoder.{i}.ffn.{gate,up,down}.{weight,bias}"},
          {"lm_head.{dense,layer_norm}.{weight,bias}", "head.{transform,norm}.{weight,bias}"}};

std::vector<Architecture> gte_architectures(const std::string& stem) {
  return {{stem + "ForMaskedLM", masked_language_model()},
          {stem + "Model", {.kind = HeadKind::pooled}},
          {stem + "ForSequenceClassification", labels_of_first(Activation::tanh)},
          {stem + "ForTokenClassification", labels_of_each()}};
}

}  // namespace

const Family gte = {"gte",        gte_architectures("Gte"),
                    gte_config,   gte_names("gte."),
                    "gte.",       {"pooler.dense.weight", "pooler.dense.bias"},
                    gte_in_memory};
const Family alibaba_new = {"new",          gte_architectures("New"),
                            alibaba_config, gte_names("new."),
                            "new.",         {"pooler.dense.weight", "pooler.dense.bias"}};

}  // namespace fovea::model
