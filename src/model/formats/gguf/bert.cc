// GGUF's encoders, which are shaped like BERT: with a head for labels of texts, or none. llama.cpp
// approximates the exact GELU of all of them.

#include "families/bert.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

constexpr int kRank = 4, kMean = 1, kFirst = 2;  // llama.cpp's numbers of poolings

void encoder_sizes(Config& io, Spec& s, float epsilon) {
  gguf_encoder_sizes(io, s);
  io("attention.layer_norm_epsilon", s.encoder->norm.epsilon, epsilon);
  if (!io.reading()) return;
  const int64_t head_width = s.width / s.encoder->attention.heads;
  for (const char* same :
       {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    io.only(same, head_width);
}

void token_types(Config& io, Spec& s) {
  if (io.reading() || s.token_types > 0) io("token_types.weight", s.token_types, 0);
}

// Without cls, the output layer reads the pooled states.
void label_head(Config& io, HeadSpec& head, Activation activation) {
  if (head.kind != HeadKind::sequence) return;
  io("cls.weight", head.transform, false);
  io("cls.output.bias", head.bias, false);
  if (head.transform) {
    io("cls.bias", head.transform_bias, false);
    io("cls.norm.weight", head.transform_norm, false);
  }
  if (io.reading()) head.activation = activation;
  if (!io.reading()) io.write("pooling_type", kRank);
}

// BERT, and RoBERTa with positions from 0.
void gguf_bert_config(Config& io, Spec& s) {
  bert_shape(s);
  encoder_sizes(io, s, 1e-12f);
  StackSpec& e = *s.encoder;
  e.ffn.activation = Activation::gelu;
  io("blk.0.attn_q.bias", e.attention.bias, false);
  io("blk.0.attn_output.bias", e.attention.output_bias, false);
  io("blk.0.ffn_up.bias", e.ffn.bias, false);
  token_types(io, s);
  label_head(io, s.head, Activation::tanh);
  gguf_refuse_unknown(io);
}

// BERT with rotary positions.
void rotary_encoder(Config& io, Spec& s, float epsilon) {
  rotary_bert_shape(s);
  encoder_sizes(io, s, epsilon);
  StackSpec& e = *s.encoder;
  e.ffn.activation = Activation::gelu;
  io("rope.freq_base", e.position.rotary.theta, 10'000, 1e9f);
  io.only("rope.scaling.type", "none");
  io("blk.0.attn_qkv.bias", e.attention.bias, false);
  io("blk.0.attn_output.bias", e.attention.output_bias, false);
  io("blk.0.ffn_up.bias", e.ffn.bias, false);
  token_types(io, s);
}

// Jina Embeddings 3.
void gguf_jina_bert_v3_config(Config& io, Spec& s) {
  rotary_encoder(io, s, 1e-5f);
  gguf_refuse_unknown(io);
}

// Nomic Embed 1: gated feed-forward layers without biases.
void gguf_nomic_bert_config(Config& io, Spec& s) {
  rotary_encoder(io, s, 1e-12f);
  FeedForwardSpec& f = s.encoder->ffn;
  f.gated = true;
  f.activation = Activation::silu;
  f.bias = false;
  gguf_refuse_unknown(io);
}

// Nomic Embed 2: some layers have experts. llama.cpp adds no bias to the experts' sum, so that the
// file has none and the bias is 0.
void gguf_nomic_bert_moe_config(Config& io, Spec& s) {
  rotary_encoder(io, s, 1e-5f);
  ExpertsSpec& x = s.encoder->ffn.experts;
  io("expert_count", x.count);
  io("expert_used_count", x.chosen, 1);
  x.normalise = false;
  x.sum_bias = true;
  layers_with_experts(io, *s.encoder);
  gguf_refuse_unknown(io);
}

// The first of `attention.sliding_window_pattern` layers is global, the others see half of
// attention.sliding_window on both sides.
void local_layers(Config& io, StackSpec& e) {
  auto& windows = e.attention.windows;
  int64_t seen = 0, period = 3;
  for (const int64_t w : windows) seen = w > 0 ? 2 * (w - 1) : seen;
  if (!io.reading())
    for (period = 1; period < std::ssize(windows) && windows[static_cast<size_t>(period)] > 0;)
      ++period;
  if (!io.reading() && seen == 0) return;
  io("attention.sliding_window", seen, 0);
  io("attention.sliding_window_pattern", period, 3);
  if (!io.reading()) return;
  windows.clear();
  for (int64_t i = 0; i < e.layers && seen > 0; ++i)
    windows.push_back(period > 0 && i % period == 0 ? 0 : seen / 2 + 1);
}

void gguf_modern_bert_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  e.embedding_norm = true;
  e.first_norm = false;
  e.ffn.gated = true;
  e.norm.bias = e.attention.bias = e.attention.output_bias = e.ffn.bias = false;
  e.position.kind = PositionKind::rotary;
  // llama.cpp's converter also writes the epsilon of LayerNorm under this key.
  const auto epsilon = io.value("attention.layer_norm_rms_epsilon");
  encoder_sizes(io, s, epsilon.is_number() ? epsilon.get<float>() : 1e-5f);
  io("hidden_activation", e.ffn.activation, "gelu");
  io("rope.freq_base", e.position.rotary.theta, 160'000, 1e9f);
  io("rope.freq_base_swa", e.position.rotary.local_theta, 10'000, 1e9f);
  io.only("rope.scaling.type", "none");
  local_layers(io, e);
  label_head(io, s.head, Activation::gelu);
  if (s.head.kind != HeadKind::sequence) {
    io.value("classifier.pooling_type");  // of a head that the file does not have
  } else {
    int64_t pooling = s.head.pooling == Pooling::mean ? kMean : kFirst;
    io("classifier.pooling_type", pooling, kMean);
    s.head.pooling = pooling == kFirst ? Pooling::first : Pooling::mean;
  }
  gguf_refuse_unknown(io);
}

const Names embedding_names = {
    {"token_embd.weight", "embedding.token"},
    {"token_types.weight", "embedding.type"},
    {"position_embd.weight", "encoder.position"},
    {"token_embd_norm.{weight,bias}", "encoder.norm.embedding.{weight,bias}"}};
const Names head_names = {{"cls.{weight,bias}", "sequence.transform.{weight,bias}"},
                          {"cls.norm.weight", "sequence.norm.weight"},
                          {"cls.output.{weight,bias}", "sequence.output.{weight,bias}"}};

Names bert_layers() {
  return {
      {"blk.{i}.attn_{q,k,v,output}.{weight,bias}",
       "encoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
      {"blk.{i}.attn_output_norm.{weight,bias}", "encoder.{i}.norm.attention.sum.{weight,bias}"},
      {"blk.{i}.ffn_{up,down}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
      {"blk.{i}.layer_output_norm.{weight,bias}", "encoder.{i}.norm.ffn.sum.{weight,bias}"}};
}

Names rotary_bert_layers() {
  return Names{{"blk.{i}.attn_qkv.{weight,bias}",
                "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
               {"blk.{i}.ffn_gate.weight", "encoder.{i}.ffn.gate.weight"},
               {"blk.{i}.ffn_gate_inp.weight", "encoder.{i}.ffn.router.weight"},
               {"blk.{i}.ffn_{up,down}_exps.weight", "encoder.{i}.ffn.experts.{e}.{up,down}.weight",
                Stored::stacked},
               {std::string("blk.{i}.") + kGgufSumBias, "encoder.{i}.ffn.sum_bias"}} +
         bert_layers();
}

Names modern_bert_layers() {
  return {{"blk.{i}.attn_norm.weight", "encoder.{i}.norm.attention.input.weight"},
          {"blk.{i}.attn_qkv.weight", "encoder.{i}.attention.{query+key+value}.weight"},
          {"blk.{i}.attn_output.weight", "encoder.{i}.attention.output.weight"},
          {"blk.{i}.ffn_norm.weight", "encoder.{i}.norm.ffn.input.weight"},
          {"blk.{i}.ffn_up.weight", "encoder.{i}.ffn.{gate+up}.weight"},
          {"blk.{i}.ffn_down.weight", "encoder.{i}.ffn.down.weight"},
          {"output_norm.weight", "encoder.norm.final.weight"}};
}

// The head of a file without cls.output, and that of a file with it.
std::vector<Architecture> encoder_heads() {
  return {{"encoder", {.kind = HeadKind::pooled}},
          {kGgufClassifier, {.kind = HeadKind::sequence, .labels = 2, .bias = true}}};
}

Names encoder_names(const Names& layers) { return embedding_names + layers + head_names; }

Family rotary_bert(const char* name, void (*config)(Config& io, Spec& spec)) {
  return {name, {encoder_heads().front()}, config, encoder_names(rotary_bert_layers())};
}

}  // namespace

const Family gguf_bert = {"bert", encoder_heads(), gguf_bert_config, encoder_names(bert_layers())};
const Family gguf_modern_bert = {"modern-bert", encoder_heads(), gguf_modern_bert_config,
                                 encoder_names(modern_bert_layers())};
const Family gguf_jina_bert_v3 = rotary_bert("jina-bert-v3", gguf_jina_bert_v3_config);
const Family gguf_nomic_bert = rotary_bert("nomic-bert", gguf_nomic_bert_config);
const Family gguf_nomic_bert_moe = rotary_bert("nomic-bert-moe", gguf_nomic_bert_moe_config);

}  // namespace fovea::model
