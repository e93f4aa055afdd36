#pragma once

#include <array>

#include "fovea/media/image.h"

namespace fovea::media {

// The filters of Pillow; the numbers are those of `resample` in preprocessor_config.json.
enum class Resampling { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// Returns the image in another size, with the bits of resize() of Pillow 13: the pixels of a row
// are weighted sums of those within the filter's support, which grows with the reduction
// (antialiasing), and so are the pixels of a column. The weights have 22 fractional bits, and each
// of the two steps rounds to 8 bits.
Image resized(const Image& image, int64_t height, int64_t width, Resampling filter);

// Returns the number of pixels between the two steps: rows are resized first, unless columns
// shrink by more than twice as much.
int64_t pixels_between(const Image& image, int64_t height, int64_t width);

// Returns resized(). Throws BadFile, naming the image, if a step would have more than
// kMostPixels.
Image resized_within_limit(const Image& image, int64_t height, int64_t width, Resampling filter,
                           const std::string& name);

// Returns the image in the middle of a square of a colour. Throws BadFile, naming the image, if
// it would have more than kMostPixels.
Image padded_to_square(const Image& image, const std::array<uint8_t, 3>& colour,
                       const std::string& name);

// Returns the centre of the image, with black where it is smaller, as transformers'
// center_crop(). With `rounds`, half of an odd margin is rounded to even, as in torchvision.
Image centre_of(const Image& image, int64_t height, int64_t width, bool rounds = false);

}  // namespace fovea::media
