#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/reports/explained.h"
#include "fovea/infer/classify.h"

namespace fovea::cli {

// The output of `fovea classify`. Text: columns separated by tabs; JSON: one object per text.
struct ClassifiedFormat {
  bool json = false;
  int64_t top = 0;       // number of labels of a text; 0 = all
  double threshold = 0;  // labels with lower scores are left out
  // Files of images: each name precedes its labels.
  std::vector<std::string> files = {};
};

// These functions return the lines of some texts, of which the first is number `first`, from 0.

// Text: label and score of each label of a text, in one line.
std::string labels_text(const infer::Classifications& result, size_t first,
                        const ClassifiedFormat& format);

// The explanations of the results of each text, and how text shows them.
struct ShownExplanations {
  const std::vector<std::vector<study::Explanation>>& of_texts;
  const study::ExplainOptions& options;
  BarStyle style;
};
// Like labels_text(), with explanations, one for each text.
std::string explained_labels_text(const infer::Classifications& result,
                                  const ShownExplanations& shown, size_t first,
                                  const ClassifiedFormat& format);

// These functions show the explanation of each result if `shown` is not null.
// Text: the number of the text, from 1; begin, end, label, score, entity.
std::string entities_text(const std::vector<std::vector<infer::Entity>>& result, size_t first,
                          const ClassifiedFormat& format, const ShownExplanations* shown = nullptr);
// Text: the number of the question, begin, end, score, answer.
std::string answers_text(const std::vector<std::vector<infer::ExtractedAnswer>>& result,
                         size_t first, const ClassifiedFormat& format,
                         const ShownExplanations* shown = nullptr);
// The answer to a question about an image. Text: the image's name, answer, probability.
std::string image_answer_text(const std::string& file, const std::string& answer,
                              double probability, bool json);
// Text: the number of the text and of the mask, score, token, whole text.
std::string masks_text(const std::vector<std::vector<infer::MaskCandidates>>& result, size_t first,
                       const ClassifiedFormat& format, const ShownExplanations* shown = nullptr);

}  // namespace fovea::cli
