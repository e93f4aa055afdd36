#pragma once

#include "fovea/core/random.h"
#include "fovea/media/image.h"

namespace fovea::media {

// A rectangle of pixels of an image.
struct ImagePart {
  int64_t top = 0, left = 0, height = 0, width = 0;
};

// Returns a random part of an image of this size: its area is `least` to 1 of the image's, and
// the ratio of its sides 3:4 to 4:3 of the image's (Szegedy et al. 2015, "Going deeper with
// convolutions", 6).
ImagePart random_part(int64_t height, int64_t width, double least, Random& random);

Image part_of(const Image& image, const ImagePart& part);
Image mirrored(Image image);  // left to right

}  // namespace fovea::media
