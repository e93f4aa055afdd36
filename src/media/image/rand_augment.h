#pragma once

#include "fovea/core/random.h"
#include "fovea/media/image.h"

namespace fovea::media {

// The operations of RandAugment (Cubuk et al. 2019, arXiv:1909.13719, 3), as in torchvision.
enum class ImageOperation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  colour,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize
};
constexpr int kImageOperations = 14;
constexpr int64_t kMostMagnitude = 30;

// Returns the strength of an operation at a magnitude of 0 to kMostMagnitude, for images of this
// width or height: a slope, pixels, degrees, a difference of a factor from 1, bits or a limit of
// grey. Operations without a strength: 0.
float strength_of(ImageOperation operation, int64_t magnitude, int64_t height, int64_t width);
// Whether an operation is as natural with the negative strength.
bool has_direction(ImageOperation operation);

// Returns the image after an operation of this strength, with the bits of Pillow. Pixels from
// outside the image are black, and the nearest pixel is taken.
Image transformed(const Image& image, ImageOperation operation, float strength);

// Returns the image after `count` random operations in random directions.
Image rand_augmented(Image image, int64_t count, int64_t magnitude, Random& random);

}  // namespace fovea::media
