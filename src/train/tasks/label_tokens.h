#pragma once

#include "data/labelled.h"
#include "embed/text_format.h"
#include "tasks/label_examples.h"

namespace fovea::train {

// Turns labelled texts into tokens, and their labels into numbers or targets.
class LabelTokens {
 public:
  // `names`: the labels.
  LabelTokens(infer::TextFormat format, std::vector<std::string> names);

  // Throws BadFile if a label is not among the names.
  LabelledTokens operator()(const LabelledTexts& texts);
  int64_t cut() const { return cut_; }  // number of truncated texts so far

 private:
  int32_t number_of(const std::string& label, const std::string& location) const;
  infer::TokenizedText tokens_of(const LabelledText& row) const;
  // Sets the labels too: those of the tokens that are kept, and none for special tokens.
  infer::TokenizedText words_of(const LabelledText& row, std::vector<int32_t>& labels) const;
  std::vector<int32_t> labels_of_words(const LabelledText& row, const text::Encoding& found) const;
  void add_targets(const LabelledText& row, model::ProblemType problem,
                   std::vector<float>& targets) const;

  infer::TextFormat format_;
  std::vector<std::string> names_;
  int64_t cut_ = 0;
};

// Returns the weight of each label that TrainOptions::class_weights asks for. Throws
// InvalidArgument if it is malformed or names an unknown label.
std::vector<float> class_weights(const std::string& given, const std::vector<std::string>& names,
                                 const LabelledTokens& texts);

}  // namespace fovea::train
