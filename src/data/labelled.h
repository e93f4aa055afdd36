#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// A text, or a pair of texts, with its label; or words with one label each.
struct LabelledText {
  std::string text, pair;
  std::string label;
  std::vector<std::string> words, labels;
};

struct LabelledTexts {
  std::vector<LabelledText> rows;
  bool by_word = false;  // all rows are words with labels
  int64_t empty = 0;     // number of rows without text, which are skipped
  uint64_t hash = 0;     // hash of the content
};

// Reads labelled texts. Each line of a .jsonl or .json file is a JSON object: "text", optionally
// "text_pair", and "label"; or "tokens" (or "words") and the same number of "labels" (or "tags"). A
// label is a string or an integer. Other files have lines "text<TAB>label" or "text<TAB>second
// text<TAB>label"; a first line whose last column is "label" is a header. Throws BadFile if
// a line is invalid (naming the line), if there is no labelled text, or if only some texts have one
// label per word.
LabelledTexts read_labelled(const std::vector<std::string>& files);

// Returns the distinct labels, sorted by value if all are integers, else by their bytes.
std::vector<std::string> label_names(const LabelledTexts& texts);

}  // namespace fovea
