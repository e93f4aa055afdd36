#include <functional>

#include "base/error.h"
#include "base/nearest.h"
#include "fovea/spec.h"

namespace fovea {
namespace {

struct Size {
  int64_t layers, heads, width;
};

void set_size(StackSpec& stack, const Size& size) {
  stack.layers = size.layers;
  stack.attention.heads = size.heads;
}

void set_dropout(Spec& spec, float probability) {
  spec.dropout = {probability, probability, probability};
}

// Pre-norm decoders with learned positions and a tied head (Radford et al. 2019, table 2).
Spec gpt(const Size& size, int64_t context, int64_t vocabulary, float dropout = 0) {
  Spec s;
  s.vocabulary = vocabulary;
  s.width = size.width;
  s.context = context;
  set_size(*s.decoder, size);
  set_dropout(s, dropout);
  return s;
}
Spec gpt2(const Size& size) { return gpt(size, 1024, 50257); }

// Brown et al. 2020, table 2.1. Every other layer of theirs sees a band of keys only, whose width
// they do not tell; here all layers see all.
Spec gpt3() { return gpt({96, 96, 12288}, 2048, 50257); }

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
  s.encoder->ffn.activation = ActivationKind::gelu;
  s.decoder.reset();
  s.head.kind = HeadKind::pooled;
  s.head.transform = true;
  s.head.activation = ActivationKind::tanh;
  set_dropout(s, 0.1f);
  return s;
}

Spec roberta() {  // Liu et al. 2019: positions begin behind the padding's row
  Spec s = bert({12, 12, 768});
  s.vocabulary = 50265;
  s.token_types = 1;
  s.encoder->position.offset = 2;
  s.encoder->norm.epsilon = 1e-5f;
  return s;
}

Spec distilbert() {  // Sanh et al. 2019
  Spec s = bert({6, 12, 768});
  s.token_types = 0;
  s.head.transform = false;
  return s;
}

struct Wide {  // of a feed-forward layer, and of a model with as many key-value heads
  int64_t ffn, kv_heads, vocabulary, context;
};

// Pre-norm decoders with rotary positions, RMSNorm, SwiGLU and no biases (Touvron et al. 2023).
Spec llama(const Size& size, const Wide& wide) {
  Spec s = gpt(size, wide.context, wide.vocabulary);
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::rotary;
  d.norm.kind = NormKind::rms;
  d.attention.kv_heads = wide.kv_heads;
  d.attention.bias = d.attention.output_bias = false;
  d.ffn.activation = ActivationKind::silu;
  d.ffn.gated = true;
  d.ffn.width = wide.ffn;
  d.ffn.bias = false;
  s.head.tied = false;
  return s;
}

Spec llama3() {  // Grattafiori et al. 2024
  Spec s = llama({32, 32, 4096}, {14336, 8, 128256, 8192});
  s.decoder->position.rotary.theta = 500000;
  return s;
}

Spec mistral() {  // Jiang et al. 2023
  Spec s = llama({32, 32, 4096}, {14336, 8, 32000, 32768});
  s.decoder->attention.windows = {4096};
  return s;
}

Spec mixtral() {  // Jiang et al. 2024
  Spec s = llama({32, 32, 4096}, {14336, 8, 32000, 32768});
  s.decoder->position.rotary.theta = 1e6f;
  s.decoder->ffn.experts.count = 8;
  s.decoder->ffn.experts.chosen = 2;
  s.decoder->ffn.experts.balance = 0.02f;
  return s;
}

// Raffel et al. 2020, 2.1 and 3.7: biases by distance, which the layers of a stack share, and
// scores that are not scaled.
Spec t5(const Size& size, int64_t head_width, int64_t ffn_width) {
  Spec s;
  s.vocabulary = 32128;
  s.width = size.width;
  s.context = 512;
  StackSpec& d = *s.decoder;
  set_size(d, size);
  d.position = {.kind = PositionKind::none, .bias = DistanceBias::relative};
  d.norm = {.kind = NormKind::rms, .epsilon = 1e-6f};
  d.attention.head_width = head_width;
  d.attention.bias = d.attention.output_bias = false;
  d.attention.scale = 1;
  d.ffn.activation = ActivationKind::relu;
  d.ffn.width = ffn_width;
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
  s.encoder->ffn.activation = ActivationKind::gelu;
  s.decoder = s.encoder;
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
  s.encoder->ffn.activation = ActivationKind::relu;
  s.decoder = s.encoder;
  s.dropout = {dropout, 0, dropout};
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
  s.encoder->ffn.activation = ActivationKind::gelu;
  s.decoder.reset();
  s.head.kind = HeadKind::pooled;
  s.head.transform = true;
  s.head.activation = ActivationKind::tanh;
  return s;
}

// Radford et al. 2022, table 1: sinusoids in the encoder, a learned table in the decoder.
Spec whisper(const Size& size, int64_t bins = 80, int64_t vocabulary = 51865) {
  Spec s = gpt(size, 448, vocabulary);
  s.decoder->attention.key_bias = false;
  s.decoder->ffn.activation = ActivationKind::gelu;
  s.encoder = s.decoder;
  s.encoder->position = {.kind = PositionKind::sinusoidal, .waves = Waves::spread, .stored = true};
  s.input.kind = InputKind::audio;
  s.input.bins = bins;
  return s;
}

struct Preset {
  const char* name;
  std::function<Spec()> make;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"tiny",
       [] {
         return gpt({3, 4, 64}, 64, 0);
       }},
      {"nano",
       [] {
         return gpt({4, 4, 128}, 64, 0);
       }},
      {"baby",
       [] {
         return gpt({6, 6, 384}, 256, 0, 0.2f);
       }},
      {"gpt2",
       [] {
         return gpt2({12, 12, 768});
       }},
      {"gpt2-medium",
       [] {
         return gpt2({24, 16, 1024});
       }},
      {"gpt2-large",
       [] {
         return gpt2({36, 20, 1280});
       }},
      {"gpt2-xl",
       [] {
         return gpt2({48, 25, 1600});
       }},
      {"gpt3", gpt3},
      {"llama2-7b",
       [] {
         return llama({32, 32, 4096}, {11008, 32, 32000, 4096});
       }},
      {"llama2-13b",
       [] {
         return llama({40, 40, 5120}, {13824, 40, 32000, 4096});
       }},
      {"llama2-70b",
       [] {
         return llama({80, 64, 8192}, {28672, 8, 32000, 4096});
       }},
      {"llama3-8b", llama3},
      {"mistral-7b", mistral},
      {"mixtral-8x7b", mixtral},
      {"bert-base",
       [] {
         return bert({12, 12, 768});
       }},
      {"bert-large",
       [] {
         return bert({24, 16, 1024});
       }},
      {"roberta-base", roberta},
      {"distilbert", distilbert},
      {"transformer-base",
       [] {
         return original({6, 8, 512}, 0.1f);
       }},
      {"transformer-big",
       [] {
         return original({6, 16, 1024}, 0.3f);
       }},
      {"t5-small",
       [] {
         return t5({6, 8, 512}, 64, 2048);
       }},
      {"t5-base",
       [] {
         return t5({12, 12, 768}, 64, 3072);
       }},
      {"t5-large",
       [] {
         return t5({24, 16, 1024}, 64, 4096);
       }},
      {"t5-3b",
       [] {
         return t5({24, 32, 1024}, 128, 16384);
       }},
      {"t5-11b",
       [] {
         return t5({24, 128, 1024}, 128, 65536);
       }},
      {"bart-base",
       [] {
         return bart({6, 12, 768});
       }},
      {"bart-large",
       [] {
         return bart({12, 16, 1024});
       }},
      {"vit-base",
       [] {
         return vit({12, 12, 768}, 16);
       }},
      {"vit-large",
       [] {
         return vit({24, 16, 1024}, 16);
       }},
      {"vit-huge",
       [] {
         return vit({32, 16, 1280}, 14);
       }},
      {"whisper-tiny",
       [] {
         return whisper({4, 6, 384});
       }},
      {"whisper-base",
       [] {
         return whisper({6, 8, 512});
       }},
      {"whisper-small",
       [] {
         return whisper({12, 12, 768});
       }},
      {"whisper-medium",
       [] {
         return whisper({24, 16, 1024});
       }},
      {"whisper-large",
       [] {
         return whisper({32, 20, 1280});
       }},
      {"whisper-large-v3",
       [] {
         return whisper({32, 20, 1280}, 128, 51866);
       }},
  };
  return all;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

Spec preset(const std::string& name) {
  for (const Preset& preset : presets())
    if (name == preset.name) return preset.make();
  fail(ErrorKind::InvalidArgument, "--preset: \"{}\" is not a preset; did you mean {}?", name,
       nearest(name, preset_names()));
}

}  // namespace fovea
