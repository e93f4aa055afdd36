#include "image/tiles.h"

#include <algorithm>

#include "base/error.h"

namespace fovea::media {
namespace {

constexpr int64_t kLargestSide = 4096;  // of an image that is divided, in transformers too
constexpr int64_t kMostTiles = 64;      // on a side

struct Sides {
  int64_t height, width;
};

// The sides with the ratio width / height, of which the longer one is `longer`.
Sides with_longer(Sides s, int64_t longer) {
  const double ratio = static_cast<double>(s.width) / static_cast<double>(s.height);
  const auto shorter =
      static_cast<int64_t>(s.width >= s.height ? static_cast<double>(longer) / ratio
                                               : static_cast<double>(longer) * ratio);
  return s.width >= s.height ? Sides{shorter, longer} : Sides{longer, shorter};
}

// The longer side becomes `longest`, the shorter one an even number; then both are limited.
Sides before_tiles(Sides s, int64_t longest) {
  const bool wide = s.width >= s.height;
  Sides to = with_longer(s, longest);
  int64_t& shorter = wide ? to.height : to.width;
  shorter = std::max<int64_t>(1, shorter + shorter % 2);
  if (std::max(to.height, to.width) > kLargestSide) to = with_longer(to, kLargestSide);
  return {std::max<int64_t>(1, to.height), std::max<int64_t>(1, to.width)};
}

int64_t up_to_multiple(int64_t side, int64_t tile) { return (side + tile - 1) / tile * tile; }

Sides multiples(Sides s, int64_t tile) {
  const Sides to = with_longer(s, up_to_multiple(std::max(s.height, s.width), tile));
  return {up_to_multiple(std::max<int64_t>(1, to.height), tile),
          up_to_multiple(std::max<int64_t>(1, to.width), tile)};
}

Image part_of(const Image& image, int64_t top, int64_t left, int64_t side) {
  Image part{side, side, {}};
  for (int64_t y = top; y < top + side; ++y) {
    const auto row = image.pixels.begin() + 3 * (y * image.width + left);
    part.pixels.insert(part.pixels.end(), row, row + 3 * side);
  }
  return part;
}

}  // namespace

ImageTiles tiles_of(const ImageProcessor& processor, const Image& given, const std::string& name) {
  const auto sized = [&](const Image& image, Sides to) {
    return resized_within_limit(image, to.height, to.width, processor.resampling, name);
  };
  Sides sides{given.height, given.width};
  Image image = given;
  if (processor.longest > 0) {
    sides = before_tiles(sides, processor.longest);
    image = sized(image, sides);
  }
  if (!processor.divides) return {0, 0, {processor.fitted(image, name)}};
  const int64_t tile = processor.resize.height;
  sides = multiples(sides, tile);
  if (std::max(sides.height, sides.width) > kMostTiles * tile)
    fail(ErrorKind::BadFile,
         "{}: the image has {} x {} pixels, {} x {} before it is divided into tiles of {}; "
         "expected at most {} tiles on a side",
         name, given.width, given.height, sides.width, sides.height, tile, kMostTiles);
  image = sized(image, sides);
  ImageTiles tiles;
  if (sides.height > tile || sides.width > tile) {
    tiles.rows = sides.height / tile, tiles.columns = sides.width / tile;
    for (int64_t row = 0; row < tiles.rows; ++row)
      for (int64_t column = 0; column < tiles.columns; ++column)
        tiles.images.push_back(part_of(image, row * tile, column * tile, tile));
    image = sized(image, {tile, tile});
  }
  tiles.images.push_back(std::move(image));
  return tiles;
}

}  // namespace fovea::media
