#pragma once

#include "fovea/infer/image_prompt.h"
#include "transformer/prompt_images.h"

namespace fovea::infer {

// The text of a prompt, with the images' text instead of their marks, and their tiles. The
// arguments are those of image_prompt().
class ExpandedPrompt {
 public:
  ExpandedPrompt(const model::Model& model, const std::string& text, size_t count,
                 const std::function<media::Image(size_t)>& image, text::SpecialTokens special,
                 const std::vector<std::string>& names);

  // Returns the ids of the text with `more` at its end.
  std::vector<int32_t> ids(const std::string& more) const;
  // Returns the prompt of ids() with nothing at its end. Moves the tiles.
  ImagePrompt prompt();
  // Returns the prompt of ids that contain the tokens of the tiles. Moves the tiles. Throws
  // InvalidArgument if the vocabulary has no token for images, BadFile if the ids lack the
  // tokens.
  ImagePrompt prompt_of(std::vector<int32_t> ids);

 private:
  ImagePrompt with_tiles(std::vector<int32_t> ids);

  const model::Model model_;
  text::SpecialTokens special_;
  // Whether the vocabulary has a token for images. If not, any token takes the place of a vector,
  // and the text is in pieces with a tile after each but the last.
  bool has_token_ = true;
  std::vector<std::string> pieces_;
  std::vector<model::PromptImages::Part> tiles_;  // without their offsets in the prompt
};

}  // namespace fovea::infer
