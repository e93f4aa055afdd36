#pragma once

#include <string>
#include <vector>

#include "fovea/infer/image_prompt.h"

namespace fovea::infer {

// A question about an image: the text of a prompt with one mark for the image, read as
// image_prompt() does.
struct ImageQuestion {
  std::string text;
  text::SpecialTokens special = text::SpecialTokens::parsed;
};

// Returns the prompt of a question: the question itself, if it has a mark; else a user's message by
// the chat template of the model's folder or, without a template, the image and the question
// below it. Throws InvalidArgument if it has several marks, and the errors of chat_format() and
// render_with_images().
ImageQuestion image_question(const model::Model& model, const std::string& folder,
                             const std::string& question);

// Returns the log-probability of each label after the question: the sum over the label's tokens. A
// space separates a label from a question that does not end with white space. `name` is the
// image's name in errors. Throws InvalidArgument if there is no label or one has no tokens, if a
// label does not fit into the context, and the errors of image_prompt().
std::vector<double> label_logprobs(const model::Model& model, const ImageQuestion& question,
                                   const media::Image& image,
                                   const std::vector<std::string>& labels,
                                   const std::string& name = "image 1");

}  // namespace fovea::infer
