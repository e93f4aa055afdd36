#include <cmath>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/nearest.h"
#include "fovea/model/spec.h"

namespace fovea::model {
namespace {

struct Size {
  int64_t layers, heads, width;
  int64_t ffn_width = 0, kv_heads = 0, head_width = 0;  // 0 = derived
};

void set_size(StackSpec& stack, const Size& size) {
  stack.layers = size.layers;
  stack.attention.heads = size.heads;
  stack.attention.kv_heads = size.kv_heads;
  stack.attention.head_width = size.head_width;
  stack.ffn.width = size.ffn_width;
}

void set_dropout(Spec& spec, float probability) {
  spec.dropout = {probability, probability, probability};
}

// Pre-norm decoders with learned positions and a tied head (Radford et al. 2019, table 2).
Spec gpt(const Size& size, int64_t context, int64_t vocabulary) {
  Spec s;
  s.vocabulary = vocabulary;
  s.width = size.width;
  s.context = context;
  set_size(*s.decoder, size);
  return s;
}
Spec gpt2(const Size& size) { return gpt(size, 1024, 50257); }

// Trained from scratch; the text determines the vocabulary.
Spec small(const Size& size) { return gpt(size, 64, 0); }
// What speeds up the first seconds of training: rotary positions, norms of queries and keys, ReLU
// squared (So et al. 2021), and outputs that begin at 0.
Spec quick(const Size& size, int64_t context) {
  Spec s = gpt(size, context, 0);
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::rotary;
  d.norm.kind = NormKind::rms;
  d.attention.norm = QueryKeyNorm::head;
  d.ffn.activation = Activation::relu_squared;
  d.zero_outputs = true;
  return s;
}
Spec speedrun(const Size& size) { return quick(size, 128); }
Spec speedrun_large(const Size& size) {
  Spec s = quick(size, 256);
  set_dropout(s, 0.1f);
  return s;
}
Spec baby(const Size& size) {
  Spec s = gpt(size, 256, 0);
  set_dropout(s, 0.2f);
  return s;
}

// Brown et al. 2020, table 2.1. Every other layer of the original sees a band of keys whose width
// is not published; here all layers see all keys.
Spec gpt3(const Size& size) { return gpt(size, 2048, 50257); }

StackSpec post_norm(const Size& size) {
  StackSpec stack;
  set_size(stack, size);
  stack.placement = {.input = false, .output = false, .sum = true};
  stack.final_norm = false;
  return stack;
}

// Post-norm encoders with a norm on the embeddings (Devlin et al. 2019).
Spec bert(const Size& size) {
  Spec s;
  s.vocabulary = 30522;
  s.width = size.width;
  s.context = 512;
  s.token_types = 2;
  s.encoder = post_norm(size);
  s.encoder->norm.epsilon = 1e-12f;
  s.encoder->embedding_norm = true;
  s.encoder->ffn.activation = Activation::gelu;
  s.decoder.reset();
  s.head.kind = HeadKind::pooled;
  s.head.transform = true;
  s.head.activation = Activation::tanh;
  set_dropout(s, 0.1f);
  return s;
}

Spec roberta(const Size& size) {  // Liu et al. 2019: positions start after the padding's row
  Spec s = bert(size);
  s.vocabulary = 50265;
  s.token_types = 1;
  s.encoder->position.offset = 2;
  s.encoder->norm.epsilon = 1e-5f;
  return s;
}

Spec distilbert(const Size& size) {  // Sanh et al. 2019
  Spec s = bert(size);
  s.token_types = 0;
  s.head.transform = false;
  return s;
}

// Pre-norm decoders with rotary positions, RMSNorm, SwiGLU and no biases (Touvron et al. 2023).
Spec llama(const Size& size, int64_t context, int64_t vocabulary = 32000) {
  Spec s = gpt(size, context, vocabulary);
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::rotary;
  d.norm.kind = NormKind::rms;
  d.attention.bias = d.attention.output_bias = false;
  d.ffn.activation = Activation::silu;
  d.ffn.gated = true;
  d.ffn.bias = false;
  s.head.tied = false;
  return s;
}

Spec llama2(const Size& size) { return llama(size, 4096); }

Spec llama3(const Size& size) {  // Grattafiori et al. 2024
  Spec s = llama(size, 8192, 128256);
  s.decoder->position.rotary.theta = 500000;
  return s;
}

Spec mistral(const Size& size) {  // Jiang et al. 2023
  Spec s = llama(size, 32768);
  s.decoder->attention.windows = {4096};
  return s;
}

Spec mixtral(const Size& size) {  // Jiang et al. 2024
  Spec s = llama(size, 32768);
  s.decoder->position.rotary.theta = 1e6f;
  s.decoder->ffn.experts.count = 8;
  s.decoder->ffn.experts.chosen = 2;
  s.decoder->ffn.experts.balance = 0.02f;
  return s;
}

// Raffel et al. 2020, 2.1 and 3.7: relative position biases that the layers of a stack share, and
// unscaled scores.
Spec t5(const Size& size) {
  Spec s;
  s.vocabulary = 32128;
  s.width = size.width;
  s.context = 512;
  StackSpec& d = *s.decoder;
  set_size(d, size);
  d.position = {.kind = PositionKind::none, .bias = DistanceBias::relative};
  d.norm = {.kind = NormKind::rms, .epsilon = 1e-6f};
  d.attention.bias = d.attention.output_bias = false;
  d.attention.scale = 1;
  d.ffn.activation = Activation::relu;
  d.ffn.bias = false;
  s.encoder = s.decoder;
  s.head.scaled = true;
  set_dropout(s, 0.1f);
  return s;
}

Spec bart(const Size& size) {  // Lewis et al. 2020
  Spec s;
  s.vocabulary = 50265;
  s.width = size.width;
  s.context = 1024;
  s.encoder = post_norm(size);
  s.encoder->position.offset = 2;
  s.encoder->embedding_norm = true;
  s.encoder->ffn.activation = Activation::gelu;
  s.decoder = s.encoder;
  s.head.bias = true;
  s.dropout = {0.1f, 0, 0.1f};
  return s;
}

// Vaswani et al. 2017, 3 and 5.1: a vocabulary of about 37,000, one matrix for both embeddings and
// the output. The paper gives the attention's projections no biases.
Spec original(const Size& size, float dropout) {
  Spec s;
  s.vocabulary = 37000;
  s.width = size.width;
  s.context = 512;
  s.scaled_embedding = true;
  s.encoder = post_norm(size);
  s.encoder->position.kind = PositionKind::sinusoidal;
  s.encoder->attention.bias = s.encoder->attention.output_bias = false;
  s.encoder->ffn.activation = Activation::relu;
  s.decoder = s.encoder;
  s.dropout = {dropout, 0, dropout};
  return s;
}

// A small translator after Junczys-Dowmunt et al. 2018. Little data needs a narrow model and much
// dropout: of the sizes that Wu et al. 2021 (appendix B) tried on Multi30k, that of the preset
// translate is the best. The initial deviation gives embeddings a length of about 1.
Spec translator(const Size& size, float dropout) {
  Spec s = original(size, dropout);
  s.vocabulary = 0;
  s.context = 256;
  s.encoder->position.waves = Waves::halves;
  s.encoder->attention.bias = s.encoder->attention.output_bias = true;
  s.decoder = s.encoder;
  s.head.bias = true;
  s.init_deviation = 1 / std::sqrt(static_cast<float>(size.width));
  return s;
}

// Dosovitskiy et al. 2021, table 1, on 224 x 224 pixels.
Spec vit(const Size& size, int64_t patch) {
  Spec s;
  s.width = size.width;
  s.input.kind = InputKind::image;
  s.input.patch = patch;
  const int64_t side = s.input.size / patch;
  s.context = side * side + 1;
  s.encoder = StackSpec();
  set_size(*s.encoder, size);
  s.encoder->norm.epsilon = 1e-12f;
  s.encoder->ffn.activation = Activation::gelu;
  s.decoder.reset();
  s.head.kind = HeadKind::pooled;
  s.head.transform = true;
  s.head.activation = Activation::tanh;
  return s;
}

// A language model of PyTorch's recurrent layers, without anything else: no positions, norms,
// residual connections or feed-forward layers.
Spec recurrent(const Size& size, MixerKind cell) {
  Spec s;
  s.width = size.width;
  s.context = 128;
  set_size(*s.decoder, size);
  StackSpec& d = *s.decoder;
  d.mixers = {cell};
  d.position.kind = PositionKind::none;
  d.placement.input = d.final_norm = d.residual = d.ffn.present = false;
  s.head.tied = false;
  s.head.bias = true;
  return s;
}

// For small images: 8 x 8 patches.
Spec vit_tiny(const Size& size) {
  Spec s = vit(size, 4);
  s.input.size = 32;
  s.context = 65;
  return s;
}

// An encoder of small images and a decoder that reads their captions, which become CLIP's two
// models.
Spec clip_tiny(const Size& size) {
  Spec s = vit_tiny(size);
  s.context = 32;
  s.decoder = s.encoder;
  s.head = {.kind = HeadKind::pooled, .tied = false, .projection = size.width};
  return s;
}

// Without a class token, they become SigLIP's.
Spec siglip_tiny(const Size& size) {
  Spec s = clip_tiny(size);
  s.input.class_tokens = 0;
  return s;
}

// Radford et al. 2022, table 1: sinusoids in the encoder, a learned table in the decoder.
Spec whisper(const Size& size, int64_t bins, int64_t vocabulary) {
  Spec s = gpt(size, 448, vocabulary);
  s.decoder->attention.key_bias = false;
  s.decoder->ffn.activation = Activation::gelu;
  s.encoder = s.decoder;
  s.encoder->position = {.kind = PositionKind::sinusoidal, .waves = Waves::spread, .stored = true};
  s.input.kind = InputKind::audio;
  s.input.bins = bins;
  return s;
}

// Versions of the functions above that take only a size, for the table below.
Spec original_base(const Size& size) { return original(size, 0.1f); }
Spec original_big(const Size& size) { return original(size, 0.3f); }
Spec translate(const Size& size) { return translator(size, 0.3f); }
Spec translate_tiny(const Size& size) { return translator(size, 0.0f); }
Spec rnn(const Size& size) { return recurrent(size, MixerKind::rnn); }
Spec gru(const Size& size) { return recurrent(size, MixerKind::gru); }
Spec lstm(const Size& size) { return recurrent(size, MixerKind::lstm); }
Spec vit16(const Size& size) { return vit(size, 16); }
Spec vit14(const Size& size) { return vit(size, 14); }
Spec whisper_v2(const Size& size) { return whisper(size, 80, 51865); }
Spec whisper_v3(const Size& size) { return whisper(size, 128, 51866); }

struct Preset {
  const char* name;
  Spec (*make)(const Size& size);
  Size size;
};

constexpr Preset kPresets[] = {
    {"tiny", small, {3, 4, 64}},
    {"nano", small, {4, 4, 128}},
    {"speedrun", speedrun, {2, 4, 128}},
    {"speedrun-large", speedrun_large, {6, 4, 256}},
    {"baby", baby, {6, 6, 384}},
    {"rnn", rnn, {2, 1, 256}},
    {"gru", gru, {2, 1, 256}},
    {"lstm", lstm, {2, 1, 256}},
    {"gpt2", gpt2, {12, 12, 768}},
    {"gpt2-medium", gpt2, {24, 16, 1024}},
    {"gpt2-large", gpt2, {36, 20, 1280}},
    {"gpt2-xl", gpt2, {48, 25, 1600}},
    {"gpt3", gpt3, {96, 96, 12288}},
    {"llama2-7b", llama2, {32, 32, 4096, 11008}},
    {"llama2-13b", llama2, {40, 40, 5120, 13824}},
    {"llama2-70b", llama2, {80, 64, 8192, 28672, 8}},
    {"llama3-8b", llama3, {32, 32, 4096, 14336, 8}},
    {"mistral-7b", mistral, {32, 32, 4096, 14336, 8}},
    {"mixtral-8x7b", mixtral, {32, 32, 4096, 14336, 8}},
    {"bert-base", bert, {12, 12, 768}},
    {"bert-large", bert, {24, 16, 1024}},
    {"roberta-base", roberta, {12, 12, 768}},
    {"distilbert", distilbert, {6, 12, 768}},
    {"transformer-base", original_base, {6, 8, 512}},
    {"transformer-big", original_big, {6, 16, 1024}},
    {"translate", translate, {4, 4, 128, 256}},
    {"translate-tiny", translate_tiny, {2, 4, 64, 128}},
    {"t5-small", t5, {6, 8, 512}},
    {"t5-base", t5, {12, 12, 768}},
    {"t5-large", t5, {24, 16, 1024}},
    {"t5-3b", t5, {24, 32, 1024, 16384, 0, 128}},
    {"t5-11b", t5, {24, 128, 1024, 65536, 0, 128}},
    {"bart-base", bart, {6, 12, 768}},
    {"bart-large", bart, {12, 16, 1024}},
    {"vit-tiny", vit_tiny, {6, 4, 128}},
    {"vit-small", vit16, {12, 6, 384}},
    {"vit-base", vit16, {12, 12, 768}},
    {"vit-large", vit16, {24, 16, 1024}},
    {"vit-huge", vit14, {32, 16, 1280}},
    {"clip-tiny", clip_tiny, {4, 4, 128}},
    {"siglip-tiny", siglip_tiny, {4, 4, 128}},
    {"whisper-tiny", whisper_v2, {4, 6, 384}},
    {"whisper-base", whisper_v2, {6, 8, 512}},
    {"whisper-small", whisper_v2, {12, 12, 768}},
    {"whisper-medium", whisper_v2, {24, 16, 1024}},
    {"whisper-large", whisper_v2, {32, 20, 1280}},
    {"whisper-large-v3", whisper_v3, {32, 20, 1280}},
};

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

Spec preset(const std::string& name) {
  const FloatMode mode;
  for (const Preset& preset : kPresets)
    if (name == preset.name) return preset.make(preset.size);
  fail_field(ErrorKind::InvalidArgument, "preset", "\"{}\" is not a preset; expected one of {}{}",
             name, fmt::join(preset_names(), ", "), did_you_mean(name, preset_names()));
}

}  // namespace fovea::model
