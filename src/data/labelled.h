#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// A text with its label, perhaps two texts; or words with a label each.
struct LabelledText {
  std::string text, pair;
  std::string label;
  std::vector<std::string> words, labels;
};

struct LabelledTexts {
  std::vector<LabelledText> rows;
  bool by_word = false;  // words with labels, in all rows
  int64_t empty = 0;     // rows that were left out, as they say nothing
  uint64_t hash = 0;     // of the content
};

// Files of lines "text<TAB>label" or "text<TAB>second text<TAB>label" (a first line whose last
// column is "label" names the columns), or, where the name ends in .jsonl or .json, of JSON
// objects: "text", perhaps "text_pair", and "label"; or "tokens" (or "words") and as many "labels"
// (or "tags"). A label is a text or a whole number. BadFile names the line that is not so.
LabelledTexts read_labelled(const std::vector<std::string>& files);

// The distinct labels in order: whole numbers by value, else by their bytes.
std::vector<std::string> label_names(const LabelledTexts& texts);

}  // namespace fovea
