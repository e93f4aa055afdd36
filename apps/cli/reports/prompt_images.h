#pragma once

// The images of a prompt: the options --image and --frames.

#include <string>
#include <vector>

#include "fovea/infer/image_prompt.h"
#include "options/options.h"

namespace fovea::cli {

class PromptImages {
 public:
  void declare(OptionTable& table);
  bool given() const { return !arguments_.empty(); }
  // Finds the images. Throws the errors of ImageList.
  void find();
  // Returns the prompt of a text; one without marks begins with the images. Throws the errors of
  // image_prompt() and of read_image().
  infer::ImagePrompt prompt(const model::Model& model, const std::string& text,
                            text::SpecialTokens special) const;

 private:
  std::vector<std::string> arguments_, names_;
  int64_t frames_ = 0;
};

// Returns `count` of the names, spread evenly from the first to the last one; all of them if there
// are fewer.
std::vector<std::string> spread(const std::vector<std::string>& names, int64_t count);

}  // namespace fovea::cli
