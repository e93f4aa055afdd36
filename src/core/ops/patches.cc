#include <cstring>

#include "base/error.h"
#include "ops/ops.h"

namespace fovea {

Tensor patches(const Tensor& image, int64_t size) {
  check(image.rank() == 4 && size > 0 && image.dim(2) % size == 0 && image.dim(3) % size == 0,
        "patches: image is {}, squares of {}; expected [B, channels, H, W] with H and W "
        "multiples of their side",
        image.shape(), size);
  const int64_t channels = image.dim(1), height = image.dim(2), width = image.dim(3);
  const int64_t down = height / size, across = width / size;
  Tensor y = empty({image.dim(0), down * across, channels * size * size}, image.dtype());
  const size_t bytes = static_cast<size_t>(size) * size_of(image.dtype());
  // Lines of a square are ordered by (batch, down, across, channel, line).
  for (int64_t i = 0; i < y.size() / size; ++i) {
    const int64_t line = i % size, channel = i / size % channels;
    const int64_t square = i / size / channels, column = square % across;
    const int64_t row = square / across % down, batch = square / across / down;
    const int64_t from = ((batch * channels + channel) * height + row * size + line) * width;
    std::memcpy(
        y.data_as<char>() + static_cast<size_t>(i) * bytes,
        image.data_as<char>() + static_cast<size_t>(from + column * size) * size_of(image.dtype()),
        bytes);
  }
  return y;
}

}  // namespace fovea
