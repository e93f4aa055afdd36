#pragma once

// The pre-tokenizers of byte-level BPE by their GGUF names (tokenizer.ggml.pre).

#include <optional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fovea::text {

struct GgufSplit {
  std::vector<const char*> names;  // the first one is written to files
  nlohmann::ordered_json pre_tokenizer;
  bool whole_words = false;  // whether a word that is a token is not split (ignore_merges)
  bool start = false;        // whether texts begin with the start token by default
  bool composed = false;     // whether texts are normalised to NFC
};

const std::vector<GgufSplit>& gguf_splits();
const GgufSplit* find_gguf_split(std::string_view name);  // null if there is none
// Returns the first entry that splits in the same way and has the given `whole_words`; null if
// there is none. Ignores fields that only affect offsets.
const GgufSplit* gguf_split_of(const nlohmann::json& pre_tokenizer, bool whole_words);

}  // namespace fovea::text
