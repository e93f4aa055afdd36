#include <cmath>

#include "base/error.h"
#include "base/json.h"
#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
namespace {

// Reads or writes pos_att_type: a list of c2p and p2c, or a text with | between them.
void kinds_of_terms(Config& io, DisentangledSpec& d) {
  if (!io.reading()) {
    auto names = nlohmann::ordered_json::array();
    if (d.position_to_content) names.push_back("p2c");
    if (d.content_to_position) names.push_back("c2p");
    return io.write("pos_att_type", names);
  }
  const nlohmann::json given = io.value("pos_att_type");
  std::string all = "|";
  if (given.is_string()) all += given.get<std::string>() + "|";
  for (const nlohmann::json& name : given.is_array() ? given : nlohmann::json::array())
    all += (name.is_string() ? name.get<std::string>() : name.dump()) + "|";
  d.content_to_position = all.find("|c2p|") != all.npos;
  d.position_to_content = all.find("|p2c|") != all.npos;
  if (all.size() != 1 + 4 * static_cast<size_t>(d.content_to_position + d.position_to_content))
    fail(ErrorKind::Unsupported, "{}: pos_att_type is {}; expected c2p, p2c or both", io.name(),
         brief(given));
}

// Returns a count; numbers below 1, usually -1, mean `absent`.
int64_t count_in(Config& io, const char* key, int64_t absent) {
  const nlohmann::json given = io.value(key);
  int64_t count = absent;
  if (!given.is_number_integer() || given > 0) io(key, count, absent);
  return count;
}

// Reads or writes how many vectors represent distances. DeBERTa has one for each distance;
// DeBERTa-v2 may share them among ranges of distances.
void distances(Config& io, Spec& s, bool ranges) {
  PositionSpec& p = s.encoder->position;
  if (!io.reading()) {
    io.write("max_relative_positions", p.distance);
    if (ranges) io.write("position_buckets", p.buckets < 2 * p.distance ? p.buckets / 2 : -1);
    return;
  }
  p.distance = count_in(io, "max_relative_positions", s.context);
  const int64_t buckets = ranges ? count_in(io, "position_buckets", 0) : 0;
  if (buckets >= p.distance)
    fail(ErrorKind::Unsupported,
         "{}: position_buckets is {}; expected less than max_relative_positions, {}", io.name(),
         buckets, p.distance);
  p.buckets = 2 * (buckets > 0 ? buckets : p.distance);
}

// The parts that both releases share (He et al. 2021).
void common(Config& io, Spec& s, bool ranges) {
  bool absolute = s.encoder && s.encoder->position.kind == PositionKind::learned;
  bert_shape(s);
  StackSpec& e = *s.encoder;
  PositionSpec& p = e.position;
  bool relative = p.bias != DistanceBias::none;
  io.padding(s, 0);
  bert_sizes(io, s, {.epsilon = 1e-7f});
  io("max_position_embeddings", s.context, 512);
  if (io.reading()) s.token_types = count_in(io, "type_vocab_size", 0);
  io.write("type_vocab_size", s.token_types);
  io.only("embedding_size", s.width);
  io.only("pooler_hidden_size", s.width);
  if (s.head.kind == HeadKind::sequence) io("pooler_hidden_act", s.head.activation, "gelu");
  io("position_biased_input", absolute, true);
  p.kind = absolute ? PositionKind::learned : PositionKind::none;
  io("relative_attention", relative, false);
  p.bias = relative ? DistanceBias::disentangled : DistanceBias::none;
  // The scale counts the kinds of terms, even without relative attention.
  const float width = static_cast<float>(s.width) / static_cast<float>(e.attention.heads);
  DisentangledSpec kinds = p.disentangled;
  if (!relative && !io.reading()) {
    const float scale = e.attention.scale;
    kinds.content_to_position = scale * scale * width < 0.75f;
    kinds.position_to_content = scale * scale * width < 0.4f;
  }
  kinds_of_terms(io, kinds);
  const int terms = 1 + kinds.content_to_position + kinds.position_to_content;
  e.attention.scale = 1 / std::sqrt(width * static_cast<float>(terms));
  if (!relative) return;
  p.disentangled = kinds;
  distances(io, s, ranges);
}

void finish(Config& io) {
  io.write("legacy", true);  // the names of a language model's head; both kinds are read
  if (io.reading())
    io.refuse_unknown({"pooler_hidden_act", "pooler_dropout", "cls_dropout", "padding_idx",
                       "conv_act", "conv_groups", "max_relative_positions", "position_buckets",
                       "norm_rel_ebd", "share_att_key"});
}

void deberta_config(Config& io, Spec& s) {
  common(io, s, false);
  StackSpec& e = *s.encoder;
  e.attention.key_bias = false;
  if (e.position.bias != DistanceBias::none)
    e.position.disentangled.shared = e.position.disentangled.norm = false;
  io.only("talking_head", false);
  finish(io);
}

// DeBERTa-v2 and v3 (He et al. 2021, "DeBERTaV3"): buckets of distances, whose vectors may have a
// norm and share the layers of queries and keys.
void deberta_v2_config(Config& io, Spec& s) {
  common(io, s, true);
  DisentangledSpec& d = s.encoder->position.disentangled;
  const std::string none = "none", layer_norm = "layer_norm";
  if (const auto given = io.value("norm_rel_ebd"); io.reading()) {
    d.norm = given == layer_norm;
    if (!d.norm) io.only("norm_rel_ebd", none);
  }
  io.write("norm_rel_ebd", d.norm ? layer_norm : none);
  io("share_att_key", d.shared, false);
  io.only("conv_kernel_size", 0);
  if (io.reading()) io.only("attention_head_size", s.width / s.encoder->attention.heads);
  finish(io);
}

const std::string self = "deberta.encoder.layer.{i}.attention.self.";

const Names shared_names =
    bert_encoder_names("deberta.") +
    Names{{"deberta.encoder.rel_embeddings.weight", "encoder.distance"},
          {"deberta.encoder.LayerNorm.{weight,bias}", "encoder.norm.distance.{weight,bias}"},
          {"cls.predictions.transform.{dense,LayerNorm}.{weight,bias}",
           "head.{transform,norm}.{weight,bias}"},
          {"pooler.dense.{weight,bias}", "sequence.transform.{weight,bias}"},
          {"classifier.{weight,bias}", "sequence.output.{weight,bias}"}} +
    masked_output_names("cls.predictions.");

const Names deberta_names =
    Names{
        {self + "in_proj.weight", "encoder.{i}.attention.{query+key+value}.weight",
         Stored::by_head},
        {self + "{q,v}_bias", "encoder.{i}.attention.{query,value}.bias"},
        {self + "pos_proj.weight", "encoder.{i}.attention.distance_key.weight"},
        {self + "pos_q_proj.{weight,bias}", "encoder.{i}.attention.distance_query.{weight,bias}"}} +
    shared_names;

const Names deberta_v2_names = Names{{self + "{query,key,value}_proj.{weight,bias}",
                                      "encoder.{i}.attention.{query,key,value}.{weight,bias}"},
                                     {self + "pos_{query,key}_proj.{weight,bias}",
                                      "encoder.{i}.attention.distance_{query,key}.{weight,bias}"}} +
                               shared_names;

// The head of the authors' own checkpoints.
const Names own_head = {{"lm_predictions.lm_head.{dense,LayerNorm}.{weight,bias}",
                         "head.{transform,norm}.{weight,bias}"},
                        {"lm_predictions.lm_head.bias", "head.output.bias"}};

std::vector<Architecture> architectures(const std::string& stem) {
  return {{stem + "ForMaskedLM", masked_language_model()},
          {stem + "Model", {.kind = HeadKind::pooled}},
          {stem + "ForSequenceClassification", labels_of_first(Activation::gelu)},
          {stem + "ForTokenClassification", labels_of_each()},
          {stem + "ForQuestionAnswering", answer_span()}};
}

// Among them the head that tells which tokens of the pre-training were replaced.
const std::vector<std::string> ignored = {".position_ids",
                                          "cls.predictions.bias",
                                          "cls.predictions.decoder.bias",
                                          ".position_embeddings.weight",
                                          "mask_predictions.dense.weight",
                                          "mask_predictions.dense.bias",
                                          "mask_predictions.LayerNorm.weight",
                                          "mask_predictions.LayerNorm.bias",
                                          "mask_predictions.classifier.weight",
                                          "mask_predictions.classifier.bias"};

}  // namespace

const Family deberta = {
    "deberta", architectures("Deberta"), deberta_config, deberta_names, "deberta.", ignored,
    own_head};
const Family deberta_v2 = {"deberta-v2",      architectures("DebertaV2"),
                           deberta_v2_config, deberta_v2_names,
                           "deberta.",        ignored,
                           own_head};

}  // namespace fovea::model
