#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/math.h"
#include "image/decoders.h"

namespace fovea::media {
namespace {

constexpr int kWeightBits = 22;  // 32 - 8 for a pixel - 2 for weights outside [0, 1]

double sinc(double x) {
  if (x == 0) return 1;
  const double angle = x * std::numbers::pi;
  return math::sin(angle) / angle;
}

// The filters at distance x from the centre, in pixels of the smaller image.
struct Filter {
  double support;
  double (*weight)(double x);
};

// A pixel on the border of two belongs to one of them, as in Pillow.
double box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
double triangle(double x) { return std::max(1 - std::abs(x), 0.0); }
double hamming(double x) {
  x = std::abs(x);
  if (x >= 1) return 0;
  constexpr double mean = 0.54f, swing = 0.46f;  // Pillow's constants are floats
  return sinc(x) * (mean + swing * math::cos(x * std::numbers::pi));
}
// Keys 1981, eq. 4, with a = -1/2.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double lanczos(double x) {
  x = std::abs(x);
  return x < 3 ? sinc(x) * sinc(x / 3) : 0;
}

Filter filter_of(Resampling kind) {
  switch (kind) {
    case Resampling::lanczos: return {3, lanczos};
    case Resampling::bilinear: return {1, triangle};
    case Resampling::bicubic: return {2, cubic};
    case Resampling::hamming: return {1, hamming};
    default: return {0.5, box};
  }
}

// The pixels [first, first + weights) that make up one pixel of the result.
struct Window {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

Window window_of(int64_t to, int64_t from_size, int64_t to_size, const Filter& filter) {
  const double ratio = static_cast<double>(from_size) / static_cast<double>(to_size);
  const double reduction = std::max(ratio, 1.0), support = filter.support * reduction;
  const double centre = (static_cast<double>(to) + 0.5) * ratio;
  const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(centre - support + 0.5)));
  const auto end = std::min(from_size, static_cast<int64_t>(std::floor(centre + support + 0.5)));
  std::vector<double> exact;
  double sum = 0;
  for (int64_t x = first; x < end; ++x) {
    const double distance = (static_cast<double>(x) - centre + 0.5) * (1 / reduction);
    exact.push_back(filter.weight(distance));
    sum += exact.back();
  }
  Window window{first, {}};
  for (const double weight : exact) {
    const double scaled = (sum != 0 ? weight / sum : weight) * (1 << kWeightBits);
    window.weights.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
  }
  return window;
}

std::vector<Window> windows_of(int64_t from_size, int64_t to_size, const Filter& filter) {
  std::vector<Window> windows;
  for (int64_t i = 0; i < to_size; ++i) windows.push_back(window_of(i, from_size, to_size, filter));
  return windows;
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

// Rows become `windows` wide.
Image with_rows(const Image& x, const std::vector<Window>& windows) {
  const int64_t W = std::ssize(windows);
  Image y{x.height, W, std::vector<uint8_t>(static_cast<size_t>(x.height * W * 3))};
  uint8_t* to = y.pixels.data();
  for (int64_t row = 0; row < x.height; ++row) {
    const uint8_t* from = x.pixels.data() + row * x.width * 3;
    for (const Window& window : windows) {
      int32_t sums[3] = {1 << (kWeightBits - 1), 1 << (kWeightBits - 1), 1 << (kWeightBits - 1)};
      const uint8_t* pixel = from + window.first * 3;
      for (const int32_t weight : window.weights)
        for (int32_t& sum : sums) sum += *pixel++ * weight;
      for (const int32_t sum : sums) *to++ = rounded(sum);
    }
  }
  return y;
}

// Columns become `windows` high.
Image with_columns(const Image& x, const std::vector<Window>& windows) {
  const int64_t H = std::ssize(windows), bytes = x.width * 3;
  Image y{H, x.width, std::vector<uint8_t>(static_cast<size_t>(H * bytes))};
  std::vector<int32_t> sums(static_cast<size_t>(bytes));
  uint8_t* to = y.pixels.data();
  for (const Window& window : windows) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    const uint8_t* from = x.pixels.data() + window.first * bytes;
    for (const int32_t weight : window.weights)
      for (int32_t& sum : sums) sum += *from++ * weight;
    for (const int32_t sum : sums) *to++ = rounded(sum);
  }
  return y;
}

Image nearest(const Image& x, int64_t height, int64_t width) {
  const auto offset = [](int64_t to, int64_t from_size, int64_t to_size) {
    const double ratio = static_cast<double>(from_size) / static_cast<double>(to_size);
    return std::min(from_size - 1, static_cast<int64_t>((static_cast<double>(to) + 0.5) * ratio));
  };
  Image y{height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  uint8_t* to = y.pixels.data();
  for (int64_t r = 0; r < height; ++r)
    for (int64_t c = 0; c < width; ++c, to += 3)
      std::copy_n(
          x.pixels.data() + (offset(r, x.height, height) * x.width + offset(c, x.width, width)) * 3,
          3, to);
  return y;
}

bool shrinks_columns_first(const Image& x, int64_t height, int64_t width) {
  return height < x.height && 2 * (x.width - width) < x.height - height;
}

}  // namespace

Image resized(const Image& image, int64_t height, int64_t width, Resampling kind) {
  check_image_size(height, width, "the resized image");
  if (height == image.height && width == image.width) return image;
  if (kind == Resampling::nearest) return nearest(image, height, width);
  const Filter filter = filter_of(kind);
  Image x = image;
  const auto resize_rows = [&] {
    if (width != x.width) x = with_rows(x, windows_of(x.width, width, filter));
  };
  const bool columns_first = shrinks_columns_first(image, height, width);
  if (!columns_first) resize_rows();
  if (height != x.height) x = with_columns(x, windows_of(x.height, height, filter));
  if (columns_first) resize_rows();
  return x;
}

int64_t pixels_between(const Image& image, int64_t height, int64_t width) {
  return shrinks_columns_first(image, height, width) ? height * image.width : image.height * width;
}

Image resized_within_limit(const Image& image, int64_t height, int64_t width, Resampling filter,
                           const std::string& name) {
  if (height > kMostPixels / width || pixels_between(image, height, width) > kMostPixels)
    fail(ErrorKind::BadFile,
         "{}: the image has {} x {} pixels, resized to {} x {}; expected sides whose ratio keeps "
         "the resized image below {} pixels",
         name, image.width, image.height, width, height, kMostPixels);
  return resized(image, height, width, filter);
}

Image padded_to_square(const Image& image, const std::array<uint8_t, 3>& colour,
                       const std::string& name) {
  const int64_t side = std::max(image.height, image.width);
  if (image.height == image.width) return image;
  if (side > kMostPixels / side)
    fail(ErrorKind::BadFile,
         "{}: the image has {} x {} pixels, padded to a square of {}; expected at most {} pixels",
         name, image.width, image.height, side, kMostPixels);
  Image square{side, side, std::vector<uint8_t>(static_cast<size_t>(3 * side * side))};
  for (size_t i = 0; i < square.pixels.size(); ++i) square.pixels[i] = colour[i % 3];
  const int64_t top = (side - image.height) / 2, left = (side - image.width) / 2;
  for (int64_t y = 0; y < image.height; ++y)
    std::copy_n(image.pixels.begin() + 3 * y * image.width, 3 * image.width,
                square.pixels.begin() + 3 * ((top + y) * side + left));
  return square;
}

Image centre_of(const Image& image, int64_t height, int64_t width, bool rounds) {
  Image y{height, width, std::vector<uint8_t>(static_cast<size_t>(height * width * 3))};
  // The begin of the part in the image, and its place in the result, which is the larger one.
  const auto begin = [&](int64_t from, int64_t to) {
    const int64_t half = std::max<int64_t>(0, from - to) / 2;
    return half + (rounds && from > to ? (from - to) % 2 * (half % 2) : 0);
  };
  const auto offset = [](int64_t from, int64_t to) { return to > from ? (to - from + 1) / 2 : 0; };
  const int64_t rows = std::min(height, image.height), columns = std::min(width, image.width);
  const int64_t top = begin(image.height, height), left = begin(image.width, width);
  for (int64_t r = 0; r < rows; ++r)
    std::copy_n(image.pixels.data() + ((top + r) * image.width + left) * 3, columns * 3,
                y.pixels.data() +
                    ((offset(image.height, height) + r) * width + offset(image.width, width)) * 3);
  return y;
}

}  // namespace fovea::media
