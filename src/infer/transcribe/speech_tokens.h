#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "loading/loading.h"

namespace fovea::infer {

// The special tokens of a speech model (Radford et al. 2022, figure 1), from generation_config.json
// or, if it is older than these keys, from the names of the tokens.
struct SpeechTokens {
  int32_t start = 0, end = 0;
  int32_t no_timestamps = 0;
  int32_t transcribe = -1, translate = -1;        // -1: English only, and all times are of one task
  std::optional<int32_t> before_start;            // precedes the text before a window
  std::map<std::string, int32_t> languages = {};  // by code; empty: English only
  std::optional<int32_t> latest_first_time = {};  // in steps of 20 ms
  // Pairs (layer, head) of the heads of cross-attention that follow the audio; empty = unknown.
  std::vector<std::pair<int64_t, int64_t>> alignment_heads = {};
  int64_t median_width = 7;  // of the filter of their weights

  int32_t first_time() const { return no_timestamps + 1; }  // the token of 0.00 s
  int32_t silence() const { return no_timestamps - 1; }     // predicted if there is no speech
  bool is_time(int32_t id) const { return id >= first_time(); }
  bool multilingual() const { return !languages.empty(); }
  std::string language_of(int32_t id) const;  // code; "" for other tokens
};

// Throws InvalidArgument if the model is not a speech model, or if these tokens are unknown.
SpeechTokens speech_tokens(const model::Origin& origin, const model::Spec& spec,
                           const text::Tokenizer& tokenizer, const std::vector<int32_t>& end_ids);

}  // namespace fovea::infer
