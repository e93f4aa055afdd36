#include "image/exif.h"

#include <algorithm>
#include <cstddef>

namespace fovea::media {
namespace {

constexpr uint32_t kOrientation = 0x0112, kShort = 3;
constexpr size_t kEntryBytes = 12;

// Reads unsigned numbers at any offset; those beyond the end are 0.
class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes)
      : bytes_(bytes), big_endian_(bytes.starts_with("MM")) {}
  uint32_t number(size_t at, size_t size) const {
    uint32_t value = 0;
    if (at > bytes_.size() || bytes_.size() - at < size) return 0;
    for (size_t i = 0; i < size; ++i) {
      const size_t index = big_endian_ ? at + i : at + size - 1 - i;
      value = value << 8 | static_cast<uint8_t>(bytes_[index]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool big_endian_;
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  if (!tiff.starts_with("II") && !tiff.starts_with("MM")) return 1;
  const TiffReader reader(tiff);
  if (reader.number(2, 2) != 42) return 1;
  const size_t directory = reader.number(4, 4);
  const uint32_t count = reader.number(directory, 2);
  for (uint32_t i = 0; i < count; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry >= tiff.size()) break;
    if (reader.number(entry, 2) != kOrientation || reader.number(entry + 2, 2) != kShort) continue;
    const uint32_t value = reader.number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image turned(Image image, int orientation) {
  if (orientation <= 1 || orientation > 8) return image;
  const int64_t H = image.height, W = image.width;
  const bool swaps = orientation >= 5;  // rows become columns
  Image y{swaps ? W : H, swaps ? H : W, std::vector<uint8_t>(image.pixels.size())};
  // Row r and column c of the result are row i and column j of the stored image.
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  uint8_t* to = y.pixels.data();
  for (int64_t r = 0; r < y.height; ++r) {
    for (int64_t c = 0; c < y.width; ++c, to += 3) {
      int64_t i = swaps ? c : r, j = swaps ? r : c;
      if (from_bottom) i = H - 1 - i;
      if (from_right) j = W - 1 - j;
      std::copy_n(image.pixels.data() + (i * W + j) * 3, 3, to);
    }
  }
  return y;
}

}  // namespace fovea::media
