#pragma once

// The tokens that stand for images in a text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "loading/image_encoder.h"

namespace fovea::infer {

// Returns the text of an image that is divided into rows x columns tiles (0 x 0: into none), in
// which `mark` is the text of one token of images.
std::string image_text(int64_t rows, int64_t columns, const model::ImageEncoder& encoder,
                       const std::string& mark);

// Returns the first token of the next tile among ids[begin, ...); nothing if no token of images
// follows. Throws BadFile if fewer tokens follow each other than a tile has.
std::optional<int64_t> next_tile(const std::vector<int32_t>& ids, int64_t begin,
                                 const model::ImageEncoder& encoder);

}  // namespace fovea::infer
