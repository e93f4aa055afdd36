#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// How the next token is drawn. Filters apply in this order: repetition penalty, temperature, top-k,
// top-p, min-p.
struct Sampling {
  float temperature = 0.8f;  // 0 = greedy: always the likeliest token
  int64_t top_k = 40;        // only the k likeliest; 0 = all
  float top_p = 0.95f;  // the smallest set of likeliest tokens with this much probability; 1 = all
  float min_p = 0.0f;   // none below this share of the likeliest token's probability; 0 = all
  // Keskar et al. 2019: logits of seen tokens are divided (if > 0) or multiplied by this; 1 = off.
  float repetition_penalty = 1.0f;
  uint64_t seed = 0;
};

struct GenerateOptions {
  Sampling sampling;
  int64_t max_tokens = 256;  // -1 = until the end-of-text token or `stop`
  bool ignore_end = false;   // go on past the end-of-text token
  // Generation ends before the first of these; they are not part of the text.
  std::vector<std::string> stop;
};

struct Generation {
  std::vector<int32_t> ids;  // the new tokens
  std::string text;          // decoded, without the stop string
  std::string finish;        // "length", "stop" or "end"
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0, generation_seconds = 0;
};

// Receives pieces of text as they become sure: never half a character, never the start of a stop
// string. false ends the generation.
using TextSink = std::function<bool(std::string_view piece)>;

// Continues `prompt`. Past the model's context the oldest half is dropped and read again. An empty
// prompt begins with the end-of-text token if there is one, else with a newline or the vocabulary's
// first character.
Generation generate(const Model& model, const std::string& prompt, const GenerateOptions& options,
                    const TextSink& stream = {});
// The same on token ids alone; the text stays empty.
Generation generate(const Model& model, const std::vector<int32_t>& prompt,
                    const GenerateOptions& options);

}  // namespace fovea
