// The input is a file of an image, of any format: an accepted one has as many bytes as pixels, and
// can be resized and divided into tiles.

#include "fuzz.h"
#include "image/tiles.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  constexpr int64_t kSmall = 1 << 20;  // pixels; larger images only cost the fuzzer time
  succeeds_soon([&] {
    const media::Image image = media::decode_image(text_of(data, size), "image");
    require(std::ssize(image.pixels) == image.height * image.width * 3, "each pixel has 3 bytes");
    media::ImageProcessor processor;
    processor.resize = {0, 0, 8};
    processor.crop = {8, 8, 0};
    if (image.height * image.width > kSmall) return;
    require(processor.fitted(image, "image").pixels.size() == 8 * 8 * 3, "it fits");
    processor = {.resize = {8, 8, 0}, .longest = 24, .divides = true};
    const media::ImageTiles tiles = media::tiles_of(processor, image, "image");
    require(std::ssize(tiles.images) == tiles.rows * tiles.columns + 1, "the tiles and the whole");
    for (const media::Image& tile : tiles.images)
      require(tile.pixels.size() == 8 * 8 * 3, "a tile fits");
  });
  return 0;
}
