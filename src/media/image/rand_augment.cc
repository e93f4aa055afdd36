#include "image/rand_augment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/math.h"

namespace fovea::media {
namespace {

using ByteTable = std::array<uint8_t, 256>;

// The inverse of an affine map: pixel (x, y) is that at (a x + b y + c, d x + e y + f).
struct AffineMap {
  double a = 1, b = 0, c = 0, d = 0, e = 1, f = 0;
};

// As Pillow, in fixed point with 16 fractional bits, from centres of pixels to those of the nearest
// ones.
Image mapped(const Image& image, const AffineMap& m) {
  const auto fixed = [](double x) { return static_cast<int64_t>(std::floor(x * 65536 + 0.5)); };
  const int64_t W = image.width, H = image.height;
  Image y{H, W, std::vector<uint8_t>(image.pixels.size())};
  const int64_t right[] = {fixed(m.a), fixed(m.d)}, down[] = {fixed(m.b), fixed(m.e)};
  const int64_t first[] = {fixed(m.c + m.a / 2 + m.b / 2), fixed(m.f + m.d / 2 + m.e / 2)};
  for (int64_t row = 0; row < H; ++row)
    for (int64_t column = 0; column < W; ++column) {
      const int64_t from_x = (first[0] + down[0] * row + right[0] * column) >> 16;
      const int64_t from_y = (first[1] + down[1] * row + right[1] * column) >> 16;
      if (from_x < 0 || from_x >= W || from_y < 0 || from_y >= H) continue;
      std::copy_n(image.pixels.begin() + (from_y * W + from_x) * 3, 3,
                  y.pixels.begin() + (row * W + column) * 3);
    }
  return y;
}

// Around the centre, against the clock.
AffineMap turn(const Image& image, double degrees) {
  const double angle = -degrees * std::numbers::pi / 180;
  const auto [sine, cosine] = math::sine_and_cosine(angle);
  const double x = static_cast<double>(image.width) / 2, y = static_cast<double>(image.height) / 2;
  return {cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y};
}

// ITU-R BT.601, in 16-bit fixed point.
uint8_t grey(const uint8_t* pixel) {
  const uint32_t sum = pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u;
  return static_cast<uint8_t>(sum >> 16);
}

Image greyed(const Image& image) {
  Image y = image;
  for (size_t i = 0; i < y.pixels.size(); i += 3) {
    const uint8_t value = grey(&image.pixels[i]);
    std::fill_n(y.pixels.begin() + static_cast<int64_t>(i), 3, value);
  }
  return y;
}

// The mean grey, rounded, everywhere.
Image flat(const Image& image) {
  uint64_t sum = 0;
  for (size_t i = 0; i < image.pixels.size(); i += 3) sum += grey(&image.pixels[i]);
  const uint64_t count = std::max<uint64_t>(1, image.pixels.size() / 3);
  const auto mean = static_cast<uint8_t>((2 * sum + count) / (2 * count));
  return {image.height, image.width, std::vector<uint8_t>(image.pixels.size(), mean)};
}

// Weighted means of 3 x 3 pixels, the one in the middle five times; those at the edges are kept.
Image smoothed(const Image& image) {
  Image y = image;
  const int64_t bytes = image.width * 3;
  for (int64_t row = 1; row + 1 < image.height; ++row)
    for (int64_t at = 3; at + 3 < bytes; ++at) {
      const uint8_t* middle = image.pixels.data() + row * bytes + at;
      int sum = 4 * *middle;
      for (int64_t up = -1; up <= 1; ++up)
        for (int64_t side = -3; side <= 3; side += 3) sum += middle[up * bytes + side];
      y.pixels[static_cast<size_t>(row * bytes + at)] = static_cast<uint8_t>((2 * sum + 13) / 26);
    }
  return y;
}

// from + factor * (to - from)
Image blended(const Image& from, Image to, float factor) {
  for (size_t i = 0; i < to.pixels.size(); ++i) {
    const auto x = static_cast<float>(from.pixels[i]), y = static_cast<float>(to.pixels[i]);
    to.pixels[i] = static_cast<uint8_t>(std::clamp(x + factor * (y - x), 0.0f, 255.0f));
  }
  return to;
}

template <class Value>
Image replaced(Image image, Value&& value) {
  for (uint8_t& byte : image.pixels) byte = static_cast<uint8_t>(value(int{byte}));
  return image;
}

// Replaces the values of each channel by table(counts of its values).
template <class Table>
Image by_channel(Image image, Table&& table) {
  for (size_t channel = 0; channel < 3; ++channel) {
    std::array<int64_t, 256> counts{};
    for (size_t i = channel; i < image.pixels.size(); i += 3) ++counts[image.pixels[i]];
    const ByteTable values = table(counts);
    for (size_t i = channel; i < image.pixels.size(); i += 3)
      image.pixels[i] = values[image.pixels[i]];
  }
  return image;
}

ByteTable same_values() {
  ByteTable table;
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
  return table;
}

// Stretches the values to 0 to 255.
ByteTable stretching(const std::array<int64_t, 256>& counts) {
  ByteTable table = same_values();
  int low = 0, high = 255;
  while (low < 255 && counts[static_cast<size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<size_t>(high)] == 0) --high;
  if (high <= low) return table;
  const double scale = 255.0 / (high - low), offset = -low * scale;
  for (size_t i = 0; i < 256; ++i)
    table[i] = static_cast<uint8_t>(std::clamp(static_cast<double>(i) * scale + offset, 0., 255.));
  return table;
}

// Spreads the values so that their counts become uniform.
ByteTable equalizing(const std::array<int64_t, 256>& counts) {
  ByteTable table = same_values();
  int64_t sum = 0, last = 0;
  for (const int64_t count : counts) {
    sum += count;
    if (count > 0) last = count;
  }
  const int64_t step = (sum - last) / 255;
  if (step == 0) return table;
  int64_t before = step / 2;
  for (size_t i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(std::min<int64_t>(255, before / step));
    before += counts[i];
  }
  return table;
}

// Element `magnitude` of kMostMagnitude + 1 equally spaced numbers from 0 to `most`, each half
// counted from its end in fp32, as torch.linspace does.
float spaced(int64_t magnitude, float most) {
  const float step = most / static_cast<float>(kMostMagnitude);
  if (magnitude <= kMostMagnitude / 2) return step * static_cast<float>(magnitude);
  return most - step * static_cast<float>(kMostMagnitude - magnitude);
}

}  // namespace

// The ranges are those of Cubuk et al. 2018 (arXiv:1805.09501), table 6.
float strength_of(ImageOperation operation, int64_t magnitude, int64_t height, int64_t width) {
  const auto pixels = [&](int64_t side) {
    return std::trunc(
        spaced(magnitude, static_cast<float>(150.0 / 331 * static_cast<double>(side))));
  };
  switch (operation) {
    case ImageOperation::shear_x:
    case ImageOperation::shear_y: return spaced(magnitude, 0.3f);
    case ImageOperation::translate_x: return pixels(width);
    case ImageOperation::translate_y: return pixels(height);
    case ImageOperation::rotate: return spaced(magnitude, 30);
    case ImageOperation::brightness:
    case ImageOperation::colour:
    case ImageOperation::contrast:
    case ImageOperation::sharpness: return spaced(magnitude, 0.9f);
    case ImageOperation::posterize:
      return 8 - std::nearbyint(static_cast<float>(magnitude) / (kMostMagnitude / 4.0f));
    case ImageOperation::solarize: return spaced(kMostMagnitude - magnitude, 255);
    default: return 0;
  }
}

bool has_direction(ImageOperation operation) {
  return operation >= ImageOperation::shear_x && operation <= ImageOperation::sharpness;
}

Image transformed(const Image& image, ImageOperation operation, float strength) {
  const double s = strength;
  const auto factor = static_cast<float>(1 + s);
  switch (operation) {
    case ImageOperation::identity: return image;
    case ImageOperation::shear_x: return mapped(image, {.b = s});
    case ImageOperation::shear_y: return mapped(image, {.d = s});
    case ImageOperation::translate_x: return mapped(image, {.c = -s});
    case ImageOperation::translate_y: return mapped(image, {.f = -s});
    case ImageOperation::rotate: return mapped(image, turn(image, s));
    case ImageOperation::brightness:
      return replaced(image,
                      [&](int x) { return std::min(255.0f, factor * static_cast<float>(x)); });
    case ImageOperation::colour: return blended(greyed(image), image, factor);
    case ImageOperation::contrast: return blended(flat(image), image, factor);
    case ImageOperation::sharpness: return blended(smoothed(image), image, factor);
    case ImageOperation::posterize:
      return replaced(image, [&](int x) { return x & -(1 << (8 - static_cast<int>(strength))); });
    case ImageOperation::solarize:
      return replaced(image, [&](int x) { return static_cast<float>(x) < strength ? x : 255 - x; });
    case ImageOperation::autocontrast: return by_channel(image, stretching);
    case ImageOperation::equalize: return by_channel(image, equalizing);
  }
  return image;
}

Image rand_augmented(Image image, int64_t count, int64_t magnitude, Random& random) {
  for (int64_t i = 0; i < count; ++i) {
    const auto chosen = static_cast<ImageOperation>(random.uniform() * kImageOperations);
    const float strength = strength_of(chosen, magnitude, image.height, image.width);
    const bool negative = has_direction(chosen) && random.uniform() < 0.5f;
    image = transformed(image, chosen, negative ? -strength : strength);
  }
  return image;
}

}  // namespace fovea::media
