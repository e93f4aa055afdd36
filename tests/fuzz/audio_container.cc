// Bytes as an MP4, Matroska or AAC file, decoded by the module of FFmpeg's libraries: they give
// samples or an error, within a limit of time.

#include <memory>
#include <string>
#include <vector>

#include "audio/container_decoder.h"
#include "fuzz.h"

extern "C" fovea::media::OpenLibavDecoder fovea_open_libav_decoder;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const std::string bytes(text_of(data, size));
  succeeds_soon([&] {
    std::string error;
    const std::unique_ptr<media::ContainerDecoder> decoder(fovea_open_libav_decoder(bytes, error));
    require((decoder == nullptr) == !error.empty(), "a refusal has a reason");
    if (decoder == nullptr || decoder->channels() < 1 || decoder->channels() > 64) return;
    constexpr int64_t kFrames = 1024, kMost = 60 * 48000;  // a file of few bytes may hold hours
    std::vector<float> frames(static_cast<size_t>(kFrames * decoder->channels()));
    for (int64_t all = 0, count = 1; all < kMost && count > 0; all += count) {
      count = decoder->read(frames.data(), kFrames);
      require(count <= kFrames, "a block has at most the size that was requested");
      require(count >= 0 || !decoder->error().empty(), "a failure has a reason");
    }
  });
  return 0;
}
