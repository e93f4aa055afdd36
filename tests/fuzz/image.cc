// The input is a file of a picture, of any format: an accepted one has as many bytes as pixels, and
// can be resized.

#include "fuzz.h"
#include "image/processor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  constexpr int64_t kSmall = 1 << 20;  // pixels; larger pictures only cost the fuzzer time
  succeeds_soon([&] {
    const Image image = decode_image(text_of(data, size), "picture");
    require(std::ssize(image.pixels) == image.height * image.width * 3, "each pixel has 3 bytes");
    ImageProcessor processor;
    processor.resize = {0, 0, 8};
    processor.crop = {8, 8, 0};
    if (image.height * image.width > kSmall) return;
    require(processor.fitted(image, "picture").pixels.size() == 8 * 8 * 3, "it fits");
  });
  return 0;
}
