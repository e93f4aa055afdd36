#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/problem_type.h"

namespace fovea {

// A text, or a pair of texts, with its label, its labels or its number; or words with one label
// each.
struct LabelledText {
  std::string text, pair;
  std::string label;                       // single_label
  std::vector<std::string> words, labels;  // labels: of each word, or, of multi_label, of the text
  double number = 0;                       // regression
  std::string place = {};                  // "file:line"
  bool in_column = false;                  // the label is a column of a tab-separated line
};

struct LabelledTexts {
  std::vector<LabelledText> rows;
  ProblemType problem = ProblemType::single_label;  // never automatic
  bool by_word = false;                             // all rows are words with labels
  int64_t empty = 0;  // number of rows without text, which are skipped
  uint64_t hash = 0;  // hash of the content
};

// Reads labelled texts. Each line of a .jsonl or .json file is a JSON object: "text", optionally
// "text_pair", and "label" or a list "labels"; or "tokens" (or "words") and the same number of
// "labels" (or "tags"). A label is a string or a number. Files .conll, .bio, .iob and .iob2 have a
// word and, as the last column, its label in each line, and a blank line after each text. Other
// files have lines "text<TAB>label" or "text<TAB>second text<TAB>label"; a first line whose last
// column is "label" is a header; the labels of multi_label are separated by commas.
//
// If `problem` is automatic, it is multi_label if a JSON line has a list of labels, regression if
// all labels are numbers, some with a decimal point, else single_label. Throws BadFile if a line is
// invalid (naming the line and the key), if there is no labelled text, or if texts have different
// kinds of labels.
LabelledTexts read_labelled(const std::vector<std::string>& files,
                            ProblemType problem = ProblemType::automatic);

// Returns the number that the whole text is; unset if the text is not a finite number.
std::optional<double> finite_number(const std::string& text);

// Returns the distinct labels, sorted by value if all are integers, else by their bytes.
std::vector<std::string> label_names(const LabelledTexts& texts);

}  // namespace fovea
