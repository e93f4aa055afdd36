#pragma once

// How texts are split before byte-level BPE, by GGUF's names (tokenizer.ggml.pre).

#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea {

struct GgufSplit {
  std::vector<const char*> names;  // the first is the one written
  nlohmann::ordered_json pre_tokenizer;
  bool whole_words = false;  // a word that is a token is not split (ignore_merges)
  bool start = false;        // texts begin with the start token, unless the file says otherwise
  bool composed = false;     // normalise to NFC first
};

const std::vector<GgufSplit>& gguf_splits();
const GgufSplit* find_gguf_split(std::string_view name);  // null if there is none
// The first entry that splits in the same way, ignoring what only affects offsets.
const GgufSplit* gguf_split_of(const nlohmann::json& pre_tokenizer, bool whole_words);

}  // namespace fovea
