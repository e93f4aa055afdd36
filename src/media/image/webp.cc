// WebP files by libwebp.

#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "base/error.h"
#include "image/decoders.h"
#include "image/exif.h"

namespace fovea::media {
namespace {

[[noreturn]] void refuse_webp(const std::string& name) {
  fail(ErrorKind::BadFile, "{}: damaged WebP file; expected a complete image", name);
}

int orientation_of(const WebPDemuxer* file) {
  WebPChunkIterator chunk;
  if (WebPDemuxGetChunk(file, "EXIF", 1, &chunk) == 0) return 1;
  std::string_view exif(reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size);
  constexpr std::string_view kStart("Exif\0\0", 6);  // some programs write it here too
  if (exif.starts_with(kStart)) exif.remove_prefix(kStart.size());
  const int orientation = exif_orientation(exif);
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

}  // namespace

DecodedImage decode_webp(std::string_view bytes, const std::string& name) {
  const WebPData data{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)> file(WebPDemux(&data),
                                                                      WebPDemuxDelete);
  if (!file) refuse_webp(name);
  const int64_t W = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_WIDTH);
  const int64_t H = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_HEIGHT);
  check_image_bytes(H, W, bytes.size(), name);
  const int64_t pixels = H * W;
  WebPIterator frame;
  if (WebPDemuxGetFrame(file.get(), 1, &frame) == 0) refuse_webp(name);
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(
      &frame, WebPDemuxReleaseIterator);
  // The first image of an animation may cover a part of the canvas, which is transparent.
  const bool inside = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 &&
                      frame.height > 0 && frame.x_offset + frame.width <= W &&
                      frame.y_offset + frame.height <= H;
  if (!inside || frame.complete == 0) refuse_webp(name);
  DecodedImage decoded{{H, W, std::vector<uint8_t>(static_cast<size_t>(4 * pixels))}};
  const int64_t begin = 4 * (frame.y_offset * W + frame.x_offset);
  const auto room = static_cast<size_t>(4 * pixels - begin);
  int width = 0, height = 0;  // those of the stream, which could differ from the header's
  if (WebPGetInfo(frame.fragment.bytes, frame.fragment.size, &width, &height) == 0 ||
      width != frame.width || height != frame.height ||
      WebPDecodeRGBAInto(frame.fragment.bytes, frame.fragment.size,
                         decoded.image.pixels.data() + begin, room,
                         static_cast<int>(4 * W)) == nullptr)
    refuse_webp(name);
  draw_on_white(decoded.image.pixels);
  decoded.orientation = orientation_of(file.get());
  return decoded;
}

}  // namespace fovea::media
