#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::media {

// An image: red, green and blue of each pixel, row by row.
struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> pixels;  // [height, width, 3]
};

// A larger image is refused by its header, before memory is allocated. Decoding takes at most 4
// bytes for each pixel, and 12 more for a progressive JPEG file.
constexpr int64_t kMostPixels = 100'000'000;
// The largest file of an image.
constexpr size_t kMostImageBytes = size_t{256} << 20;

// Decodes a PNG, JPEG or WebP file, which its first bytes identify; of an animation, the first
// image. The image is turned as its EXIF data says, transparent parts are drawn on white,
// 16-bit samples are cut to their upper 8 bits, and profiles of colours are ignored, as the image
// processors of transformers do. `name` is the file's name in errors. Throws BadFile if the bytes
// are damaged or have another format; OutOfMemory if the image has more than kMostPixels.
Image decode_image(std::string_view bytes, const std::string& name);
// Throws the errors of read_file() too.
Image read_image(const std::string& path);

// Returns whether a file's name ends like that of an image: .png, .jpg, .jpeg or .webp.
bool is_image_name(std::string_view path);

}  // namespace fovea::media
