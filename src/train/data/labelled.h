#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model/spec.h"

namespace fovea::train {

// A text, or a pair of texts, with its label, its labels or its number; or words with one label
// each.
struct LabelledText {
  std::string text, pair;
  std::string label;                       // single_label
  std::vector<std::string> words, labels;  // labels: of each word, or, of multi_label, of the text
  double number = 0;                       // regression
  std::string location = {};               // "file:line"
  bool in_column = false;                  // the label is a column of a table
  bool numbers = false;                    // the labels are a list of numbers, or true and false
};

struct LabelledTexts {
  std::vector<LabelledText> rows;
  model::ProblemType problem = model::ProblemType::single_label;  // never automatic
  bool by_word = false;                                           // all rows are words with labels
  int64_t empty = 0;  // number of rows without text, which are skipped
  uint64_t hash = 0;  // hash of the content
};

// Reads labelled texts.
//   .jsonl, .json: records (see each_json_record()) with "text", optionally "text_pair", and
//     "label" or a list "labels"; or "tokens" (or "words") and the same number of "labels" (or
//     "tags", "ner_tags", "pos_tags"). A label is a string, a number, true or false.
//   .conll, .bio, .iob, .iob2: a word and, as the last column, its label in each line, and a blank
//     line after each text. A line before the words of a text that begins with "# " is a comment.
//   .conllu, and such files with 10 columns: the columns FORM and UPOS of CoNLL-U.
//   others: a table (see read_table()): one or two texts and a label; if the first row has names,
//     the columns of these names in any order. The labels of multi_label are separated by commas.
// Instead of text and text_pair, there may be other common names, such as sentence1 and sentence2,
// or review; instead of label, one such as sentiment. Without a label, columns or keys that are all
// 0 or 1 are labels. Lists "labels" of equal length with a 0 or 1 for each label have the labels
// "0", "1", ...
//
// If `problem` is automatic, it is multi_label if a record has several labels, regression if all
// labels are numbers, some with a decimal point, else single_label. Throws BadFile if a line is
// invalid (naming the line and the key), if there is no labelled text, or if texts have different
// kinds of labels.
LabelledTexts read_labelled(const std::vector<std::string>& files,
                            model::ProblemType problem = model::ProblemType::automatic);

// Returns the distinct labels, sorted by value if all are integers, else by their bytes.
std::vector<std::string> label_names(const LabelledTexts& texts);

// Describes the first record as it was understood, and the labels with their numbers, in two lines
// for a plan.
std::vector<std::string> summary_of(const LabelledTexts& texts);

}  // namespace fovea::train
