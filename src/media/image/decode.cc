#include <array>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/core/read_file.h"
#include "image/decoders.h"
#include "image/exif.h"

namespace fovea::media {

int64_t check_image_size(int64_t height, int64_t width, const std::string& name) {
  if (height <= 0 || width <= 0)
    fail(ErrorKind::BadFile, "{}: the image has {} x {} pixels; expected at least 1 x 1", name,
         width, height);
  if (height > kMostPixels / width)
    fail(ErrorKind::BadFile, "{}: the image has {} x {} pixels; expected at most {} pixels", name,
         width, height, kMostPixels);
  return height * width;
}

void check_image_bytes(int64_t height, int64_t width, size_t bytes, const std::string& name) {
  const int64_t pixels = check_image_size(height, width, name);
  if (pixels > kFreePixels && pixels / kMostPixelsPerByte > static_cast<int64_t>(bytes))
    fail(ErrorKind::BadFile,
         "{}: {} bytes for {} x {} pixels; expected at least one byte for {} pixels, or at most {} "
         "pixels",
         name, bytes, width, height, kMostPixelsPerByte, kFreePixels);
}

void draw_on_white(std::vector<uint8_t>& rgba) {
  const size_t pixels = rgba.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const unsigned alpha = rgba[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned sum = rgba[4 * i + c] * alpha + 255 * (255 - alpha);
      rgba[3 * i + c] = static_cast<uint8_t>((sum + 127) / 255);
    }
  }
  rgba.resize(3 * pixels);
}

namespace {

// A format by the first bytes of its files; '?' is any byte.
struct Format {
  std::string_view start;
  DecodedImage (*decode)(std::string_view bytes, const std::string& name);
};
constexpr Format kFormats[] = {{"\x89PNG\r\n\x1a\n", decode_png},
                               {"\xff\xd8\xff", decode_jpeg},
                               {"RIFF????WEBP", decode_webp}};

// Other files, which are refused by name.
struct OtherFormat {
  std::string_view start;
  const char* name;
};
constexpr OtherFormat kOtherFormats[] = {{"????ftypavif", "an AVIF image"},
                                         {"????ftyphei", "a HEIC image"},
                                         {"????ftypmif1", "a HEIC image"},
                                         {"????ftyp", "a video (MP4 or MOV)"},
                                         {"\x1a\x45\xdf\xa3", "a video (Matroska or WebM)"},
                                         {"RIFF????AVI ", "a video (AVI)"},
                                         {"GIF8", "a GIF image"},
                                         {"BM", "a BMP image"},
                                         {std::string_view("II*\0", 4), "a TIFF image"},
                                         {std::string_view("MM\0*", 4), "a TIFF image"}};

bool begins_with(std::string_view bytes, std::string_view start) {
  if (bytes.size() < start.size()) return false;
  for (size_t i = 0; i < start.size(); ++i)
    if (start[i] != '?' && bytes[i] != start[i]) return false;
  return true;
}

}  // namespace

Image decode_image(std::string_view bytes, const std::string& name) {
  const FloatMode mode;
  for (const Format& format : kFormats) {
    if (!begins_with(bytes, format.start)) continue;
    DecodedImage decoded = format.decode(bytes, name);
    return turned(std::move(decoded.image), decoded.orientation);
  }
  for (const OtherFormat& format : kOtherFormats)
    if (begins_with(bytes, format.start))
      fail(ErrorKind::BadFile, "{}: {}; expected a PNG, JPEG or WebP file, or a folder of them",
           name, format.name);
  fail(ErrorKind::BadFile, "{}: not an image; expected a PNG, JPEG or WebP file", name);
}

Image read_image(const std::string& path) {
  return decode_image(read_file(path, kMostImageBytes), path);
}

bool is_image_name(std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string ending(path.substr(dot + 1));
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending == "png" || ending == "jpg" || ending == "jpeg" || ending == "webp";
}

}  // namespace fovea::media
