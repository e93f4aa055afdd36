#pragma once

// Reads the large lists of a tokenizer.json (model.vocab and model.merges) without building a JSON
// tree.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::text {

struct TokenizerText {
  std::string rest;  // the file with null instead of the lists
  bool has_vocab = false;
  std::vector<std::pair<std::string, int64_t>> ids;         // model.vocab, if it is an object
  std::vector<std::pair<std::string, double>> scores;       // model.vocab, if it is an array
  std::vector<std::pair<std::string, std::string>> merges;  // model.merges
};

// Extracts the lists of the file. If the file is not JSON, `rest` is the complete file. Throws
// BadFile, naming the file and the entry, if a list has invalid entries. A merge is a pair of
// strings, or one string with a space between its two parts.
TokenizerText take_lists_out(std::string_view file, const std::string& path);

}  // namespace fovea::text
