#pragma once

#include "image/processor.h"

namespace fovea::media {

// An image in rows of square tiles, followed by the whole image in the size of a tile. Without
// rows, the whole image alone.
struct ImageTiles {
  int64_t rows = 0, columns = 0;
  std::vector<Image> images;  // [rows * columns + 1]
};

// Divides an image as Idefics3 does (Laurençon et al. 2024, 3.3): its longer side becomes
// `longest`, then both sides become multiples of a tile's. If the processor does not divide
// images, the only image is fitted(). Throws the errors of fitted().
ImageTiles tiles_of(const ImageProcessor& processor, const Image& image, const std::string& name);

}  // namespace fovea::media
