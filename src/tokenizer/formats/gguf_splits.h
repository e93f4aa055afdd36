#pragma once

// How texts are split before BPE of bytes, by the names that GGUF files give it
// (tokenizer.ggml.pre).

#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea {

struct GgufSplit {
  std::vector<const char*> names;  // the first is the one written
  nlohmann::ordered_json pre_tokenizer;
  bool whole_words = false;  // a word that is a token is not split (ignore_merges)
  bool start = false;        // texts begin with the token of beginning, unless the file says no
  bool composed = false;     // NFC first
};

const std::vector<GgufSplit>& gguf_splits();
const GgufSplit* find_gguf_split(std::string_view name);  // null where there is none
// The first that splits the same way, whatever it says about offsets.
const GgufSplit* gguf_split_of(const nlohmann::json& pre_tokenizer, bool whole_words);

}  // namespace fovea
