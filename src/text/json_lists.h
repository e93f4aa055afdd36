#pragma once

// The large lists of a tokenizer.json, read without building a tree of them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

struct TokenizerText {
  std::string rest;                // the file with null in place of the lists
  std::string_view vocab, merges;  // model.vocab and model.merges; empty where there are none
};

// Takes the file apart. Where it is no JSON, `rest` is all of it.
TokenizerText take_lists_out(std::string_view file);

// The lists; BadFile, naming the file, for anything else.
std::vector<std::pair<std::string, int64_t>> read_ids(std::string_view vocab,
                                                      const std::string& path);
std::vector<std::pair<std::string, double>> read_scores(std::string_view vocab,
                                                        const std::string& path);
// Pairs, or texts of two parts with a space between.
std::vector<std::pair<std::string, std::string>> read_merges(std::string_view merges,
                                                             const std::string& path);

}  // namespace fovea
