// PNG files by libpng. Interlaced files, palettes, grey and 16-bit samples become 8-bit RGB or
// RGBA.

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <new>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "image/decoders.h"
#include "image/exif.h"

namespace fovea::media {
namespace {

// DEFLATE (RFC 1951) expands a byte to at most 1032 bytes.
constexpr int64_t kMostExpansion = 1032;
// A chunk besides the image's data, such as a profile of colours, is skipped or refused if it
// needs more memory.
constexpr png_alloc_size_t kMostChunkBytes = 8 << 20;

// libpng reports an error by longjmp(): functions that call setjmp() make no objects with
// destructors.
struct PngFile {
  explicit PngFile(std::string_view bytes) : rest(bytes) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png != nullptr) info = png_create_info_struct(png);
    if (info == nullptr) throw std::bad_alloc();
    png_set_read_fn(png, this, read);
    png_set_chunk_malloc_max(png, kMostChunkBytes);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_image_bytes() has its own
  }
  ~PngFile() { png_destroy_read_struct(&png, &info, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  // Return whether there was no error.
  bool read_header() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_info(png, info);
    return true;
  }
  // Takes memory for two rows.
  bool begin_rows() {
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_expand(png);    // palettes, less than 8 bits, transparent colours
    png_set_strip_16(png);  // keeps the upper bytes
    png_set_gray_to_rgb(png);
    passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    return true;
  }
  bool read_rows(png_bytep pixels, int64_t height, int64_t row_bytes) {
    if (setjmp(png_jmpbuf(png))) return false;
    for (int pass = 0; pass < passes; ++pass)
      for (int64_t y = 0; y < height; ++y) png_read_row(png, pixels + y * row_bytes, nullptr);
    png_read_end(png, info);
    return true;
  }

  static void on_error(png_structp png, png_const_charp text) {
    auto* file = static_cast<PngFile*>(png_get_error_ptr(png));
    std::strncpy(file->message, text, sizeof(file->message) - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep to, size_t count) {
    auto* file = static_cast<PngFile*>(png_get_io_ptr(png));
    if (count > file->rest.size()) png_error(png, "the file ends early");
    std::memcpy(to, file->rest.data(), count);
    file->rest.remove_prefix(count);
  }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;
  int passes = 1;  // of an interlaced file: 7
  char message[200] = {};
};

int orientation_of(const PngFile& file) {
  png_bytep exif = nullptr;
  png_uint_32 bytes = 0;
  if (png_get_eXIf_1(file.png, file.info, &bytes, &exif) == 0) return 1;
  return exif_orientation({reinterpret_cast<const char*>(exif), bytes});
}

[[noreturn]] void refuse_png(const PngFile& file, const std::string& name) {
  fail(ErrorKind::BadFile, "{}: damaged PNG file ({}); expected a complete image", name,
       excerpt(file.message));
}

}  // namespace

DecodedImage decode_png(std::string_view bytes, const std::string& name) {
  PngFile file(bytes);
  if (!file.read_header()) refuse_png(file, name);
  const int64_t H = png_get_image_height(file.png, file.info);
  const int64_t W = png_get_image_width(file.png, file.info);
  check_image_bytes(H, W, bytes.size(), name);
  const int64_t pixels = H * W;
  // At least one bit for each pixel is stored.
  if (pixels / 8 > kMostExpansion * std::ssize(bytes))
    fail(ErrorKind::BadFile,
         "{}: damaged PNG file ({} bytes cannot hold {} x {} pixels); expected "
         "a complete image",
         name, bytes.size(), W, H);
  if (!file.begin_rows()) refuse_png(file, name);
  const int64_t bits = png_get_bit_depth(file.png, file.info);
  const int64_t channels = png_get_channels(file.png, file.info);
  const auto row_bytes = static_cast<int64_t>(png_get_rowbytes(file.png, file.info));
  if (bits != 8 || (channels != 3 && channels != 4) || row_bytes != channels * W)
    fail(ErrorKind::BadFile, "{}: damaged PNG file (its samples); expected an image", name);
  DecodedImage decoded{{H, W, std::vector<uint8_t>(static_cast<size_t>(pixels * channels))}};
  if (!file.read_rows(decoded.image.pixels.data(), H, row_bytes)) refuse_png(file, name);
  decoded.orientation = orientation_of(file);
  if (channels == 4) draw_on_white(decoded.image.pixels);
  return decoded;
}

}  // namespace fovea::media
