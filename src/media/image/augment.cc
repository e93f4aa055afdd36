#include "image/augment.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace fovea::media {

ImagePart random_part(int64_t height, int64_t width, double least, Random& random) {
  const double area = least + (1 - least) * random.uniform_double();
  // Uniform in the logarithm, within the ratios for which the part fits into the image.
  const double most = std::min(math::log(4.0 / 3), -math::log(area));
  const double ratio = math::exp(most * (2 * random.uniform_double() - 1));
  const auto side = [](int64_t whole, double share) {
    const auto part = static_cast<int64_t>(std::lround(static_cast<double>(whole) * share));
    return std::clamp<int64_t>(part, 1, whole);
  };
  ImagePart part;
  part.height = side(height, std::sqrt(area / ratio));
  part.width = side(width, std::sqrt(area * ratio));
  const auto offset = [&](int64_t room) {
    return static_cast<int64_t>(random.uniform_double() * static_cast<double>(room + 1));
  };
  part.top = offset(height - part.height);
  part.left = offset(width - part.width);
  return part;
}

Image part_of(const Image& image, const ImagePart& part) {
  Image y{part.height, part.width, {}};
  y.pixels.reserve(static_cast<size_t>(part.height * part.width * 3));
  for (int64_t row = 0; row < part.height; ++row) {
    const auto from = image.pixels.begin() + ((part.top + row) * image.width + part.left) * 3;
    y.pixels.insert(y.pixels.end(), from, from + part.width * 3);
  }
  return y;
}

Image mirrored(Image image) {
  for (int64_t row = 0; row < image.height; ++row) {
    uint8_t* first = image.pixels.data() + row * image.width * 3;
    for (int64_t a = 0, b = image.width - 1; a < b; ++a, --b)
      std::swap_ranges(first + a * 3, first + a * 3 + 3, first + b * 3);
  }
  return image;
}

}  // namespace fovea::media
