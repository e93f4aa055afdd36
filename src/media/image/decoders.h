#pragma once

// The decoders of the formats, and what they share.

#include <cstdint>
#include <string>
#include <string_view>

#include "fovea/media/image.h"

namespace fovea::media {

// Throws the errors of decode_image() for a header's sizes; returns the number of pixels.
int64_t check_image_size(int64_t height, int64_t width, const std::string& name);

// The larger an image, the less it may be compressed: above 4096 x 4096 pixels, a file has at
// least one byte for 512 pixels. Photographs have at least ten times as many; smaller images may
// be of one colour, which takes a few bytes. Throws BadFile, before memory is taken.
void check_image_bytes(int64_t height, int64_t width, size_t bytes, const std::string& name);
inline constexpr int64_t kMostPixelsPerByte = 512, kFreePixels = 4096 * 4096;

// A decoded image, before it is turned.
struct DecodedImage {
  Image image;
  int orientation = 1;  // EXIF's Orientation, 1 to 8
};

DecodedImage decode_png(std::string_view bytes, const std::string& name);
DecodedImage decode_jpeg(std::string_view bytes, const std::string& name);
DecodedImage decode_webp(std::string_view bytes, const std::string& name);

// Draws pixels with alpha on white, in place: the first 4 * pixels bytes become 3 * pixels bytes.
void draw_on_white(std::vector<uint8_t>& rgba);

}  // namespace fovea::media
