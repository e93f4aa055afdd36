// JPEG files by libjpeg-turbo.

#include <cstddef>
#include <cstdio>  // jpeglib.h needs it

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "image/decoders.h"
#include "image/exif.h"

namespace fovea::media {
namespace {

// Each scan of a progressive file costs time for all pixels; files of encoders have about ten,
// which the largest image may have twice.
constexpr int kMostScans = 200;
constexpr int64_t kMostScannedPixels = 20 * kMostPixels;

// libjpeg reports an error by a call, which leaves the library by longjmp(): functions that call
// setjmp() make no objects with destructors.
struct JpegFile {
  explicit JpegFile(std::string_view bytes) {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = on_error;
    errors.emit_message = on_message;
    ok = create(bytes);
  }
  ~JpegFile() { jpeg_destroy_decompress(&jpeg); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  bool create(std::string_view bytes) {
    if (setjmp(recovery)) return false;
    jpeg_create_decompress(&jpeg);
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    progress.progress_monitor = on_progress;
    jpeg.progress = &progress;
    return true;
  }
  bool read_header() {
    if (setjmp(recovery)) return false;
    jpeg_read_header(&jpeg, TRUE);
    const bool inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
    jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg);
    return true;
  }
  bool read_rows(uint8_t* to) {
    if (setjmp(recovery)) return false;
    jpeg_start_decompress(&jpeg);
    const size_t row_bytes =
        size_t{jpeg.output_width} * static_cast<size_t>(jpeg.output_components);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW row = to + jpeg.output_scanline * row_bytes;
      jpeg_read_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_decompress(&jpeg);
    return true;
  }

  static void on_error(j_common_ptr common) {
    auto* file = static_cast<JpegFile*>(common->client_data);
    common->err->format_message(common, file->message);
    std::longjmp(file->recovery, 1);
  }
  // Of the warnings, only the end of the file before that of the image is an error.
  static void on_message(j_common_ptr common, int level) {
    if (level < 0 && common->err->msg_code == JWRN_JPEG_EOF) on_error(common);
  }
  static void on_progress(j_common_ptr common) {
    auto* file = static_cast<JpegFile*>(common->client_data);
    const int64_t scans = file->jpeg.input_scan_number;
    const int64_t pixels = int64_t{file->jpeg.image_height} * file->jpeg.image_width;
    if (scans <= kMostScans && scans * pixels <= kMostScannedPixels) return;
    std::snprintf(file->message, sizeof(file->message), "%d scans of %u x %u pixels",
                  file->jpeg.input_scan_number, file->jpeg.image_width, file->jpeg.image_height);
    std::longjmp(file->recovery, 1);
  }

  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf recovery = {};
  char message[JMSG_LENGTH_MAX] = {};
  bool ok = false;
};

[[noreturn]] void refuse_jpeg(const JpegFile& file, const std::string& name) {
  fail(ErrorKind::BadFile, "{}: damaged JPEG file ({}); expected a complete image", name,
       excerpt(file.message));
}

// Returns the orientation in the EXIF segment (marker APP1) before the image's data.
int orientation_of(std::string_view bytes) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  size_t at = 2;  // after the marker of the beginning
  while (at + 4 <= bytes.size() && bytes[at] == '\xff') {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[at + i]); };
    const uint8_t marker = byte(1);
    if (marker == 0xff) {  // a fill byte
      ++at;
      continue;
    }
    if (marker == 0xda || marker == 0xd9) break;  // the data, or the end
    const size_t size = size_t{byte(2)} << 8 | byte(3);
    const std::string_view segment = bytes.substr(at + 4, size < 2 ? 0 : size - 2);
    if (marker == 0xe1 && segment.starts_with(kExif))
      return exif_orientation(segment.substr(kExif.size()));
    at += 2 + size;
  }
  return 1;
}

// Files store inks inverted: 255 is no ink. Each colour is its ink's complement, dimmed by black.
void to_rgb(std::vector<uint8_t>& inks) {
  const size_t pixels = inks.size() / 4;
  for (size_t i = 0; i < pixels; ++i) {
    const unsigned black = inks[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned ink = 255u - inks[4 * i + c];
      inks[3 * i + c] = static_cast<uint8_t>(black - (ink * black + 127) / 255);
    }
  }
  inks.resize(3 * pixels);
}

}  // namespace

DecodedImage decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegFile file(bytes);
  if (!file.ok || !file.read_header()) refuse_jpeg(file, name);
  const int64_t H = file.jpeg.output_height, W = file.jpeg.output_width;
  check_image_bytes(H, W, bytes.size(), name);
  const int64_t pixels = H * W;
  // At any size: Huffman codes take at least one bit for a block of 8 x 8 pixels of the first
  // component. Arithmetic codes could take less for an image of one colour, which is refused.
  if (pixels / kMostPixelsPerByte > std::ssize(bytes))
    fail(ErrorKind::BadFile,
         "{}: damaged JPEG file ({} bytes cannot hold {} x {} pixels); expected a complete image",
         name, bytes.size(), W, H);
  const int64_t channels = file.jpeg.out_color_components;
  DecodedImage decoded{{H, W, std::vector<uint8_t>(static_cast<size_t>(pixels * channels))}};
  if (!file.read_rows(decoded.image.pixels.data())) refuse_jpeg(file, name);
  if (channels == 4) to_rgb(decoded.image.pixels);
  decoded.orientation = orientation_of(bytes);
  return decoded;
}

}  // namespace fovea::media
