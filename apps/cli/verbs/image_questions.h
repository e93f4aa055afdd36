#pragma once

// What `classify --question` does: answers of a model of images and texts.

#include <string>
#include <vector>

#include "cli/reports/classified.h"
#include "fovea/model/model.h"

namespace fovea::cli {

struct QuestionOptions {
  std::string text;
  std::string folder;               // the model's; has its chat template
  std::vector<std::string> labels;  // the possible answers; empty: any answer
  bool raw = false;                 // log-probabilities of the labels
  int64_t answer_tokens = 0;        // maximum of an answer, without labels
};

// Prints, for each image, the probabilities of the labels after the question, or else the model's
// answer. Returns the exit code.
int answer_about_images(const model::Model& model, const std::vector<std::string>& images,
                        const QuestionOptions& options, const ClassifiedFormat& format);

}  // namespace fovea::cli
