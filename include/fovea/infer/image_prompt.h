#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fovea/media/image.h"
#include "fovea/model/model.h"

namespace fovea::model {
class PromptImages;  // internals, for the library only
}

namespace fovea::infer {

// The tokens of a prompt and its images, whose tokens get vectors computed from the pixels.
struct ImagePrompt {
  std::vector<int32_t> ids;
  std::shared_ptr<const model::PromptImages> images = {};  // null = none
};

// Returns whether the model reads images in its prompts (LLaVA: Liu et al. 2023; Idefics3:
// Laurençon et al. 2024; SmolVLM: Marafioti et al. 2025).
bool reads_images(const model::Model& model);
// Returns the text that marks an image in a prompt, such as "<image>".
std::string image_mark(const model::Model& model);
// Returns the number of marks in a text. Those that Tokenizer::guarded() marked do not count.
int64_t image_marks(const model::Model& model, const std::string& text);

// Returns the prompt for a text in which each mark stands for the next one of `count` images.
// image(i) is called once for each of them, in order. Each mark becomes the tokens of its image,
// which is resized, cropped or divided as the model's processor says. `names` are those of the
// images in errors; a missing one is "image 1", ... With SpecialTokens::parsed, special tokens
// in the text are read as such, and it gets those that the tokenizer adds; with guarded, it is one
// that a chat template rendered. Throws InvalidArgument if the model reads no images or the
// numbers of marks and images differ, BadFile if the resized form of an image is too large, and
// the errors of `image`.
ImagePrompt image_prompt(const model::Model& model, const std::string& text, size_t count,
                         const std::function<media::Image(size_t)>& image,
                         text::SpecialTokens special, const std::vector<std::string>& names = {});

// Returns the prompt of ids that contain the tokens of one image. Throws InvalidArgument if the
// model has no token for images, BadFile if the ids lack those of the image.
ImagePrompt image_prompt(const model::Model& model, const std::vector<int32_t>& ids,
                         const media::Image& image, const std::string& name);

}  // namespace fovea::infer
