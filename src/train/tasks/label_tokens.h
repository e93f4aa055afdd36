#pragma once

#include "data/labelled.h"
#include "fovea/tokenizer.h"
#include "train/tasks/label_examples.h"

namespace fovea {

// Turns labelled texts into tokens, and their labels into numbers or targets.
class LabelTokens {
 public:
  // `names`: the labels; texts are truncated to `context` tokens and end with `end`, if it is set.
  LabelTokens(const Tokenizer& tokenizer, std::vector<std::string> names, int64_t context,
              std::optional<int32_t> end);

  // Throws BadFile if a label is not among the names.
  LabelledTokens operator()(const LabelledTexts& texts);
  int64_t cut() const { return cut_; }  // number of truncated texts so far

 private:
  int32_t number_of(const std::string& label, const std::string& place) const;
  Encoding tokens_of(const LabelledText& row, bool by_word) const;
  std::vector<int32_t> labels_of_words(const LabelledText& row, const Encoding& found) const;
  void add_targets(const LabelledText& row, ProblemType problem, std::vector<float>& targets) const;
  void truncate(Encoding& found, std::vector<int32_t>& labels, bool by_word);

  const Tokenizer& tokenizer_;
  std::vector<std::string> names_;
  int64_t context_, cut_ = 0;
  std::optional<int32_t> end_;
};

// Returns the weight of each label that TrainOptions::class_weights asks for. Throws
// InvalidArgument if it is malformed or names an unknown label.
std::vector<float> class_weights(const std::string& asked, const std::vector<std::string>& names,
                                 const LabelledTokens& texts);

}  // namespace fovea
