// Bytes as an audio file, and as a stream of audio: they give samples near [-1, 1] or an error, and
// no more samples than a file of this size can hold.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "fovea/media/audio.h"
#include "fuzz.h"

namespace {

// Reads at most a minute; a compressed file may hold hours in a few bytes.
void read_some(const fovea::media::AudioSource& audio) {
  constexpr int64_t kMost = 60 * 16000;
  float samples[4096];
  for (int64_t all = 0; all < kMost;) {
    const int64_t count = audio(samples, 4096);
    fovea::require(count >= 0 && count <= 4096, "a block has the size that was requested");
    if (count == 0) return;
    for (int64_t i = 0; i < count; ++i)
      fovea::require(std::isfinite(samples[i]), "samples are finite");
    all += count;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::make_shared<const std::string>(fovea::text_of(data, size));
  fovea::succeeds_soon([&] { read_some(fovea::media::open_audio(bytes, "file")); });
  fovea::succeeds_soon([&] {
    read_some(fovea::media::open_audio_stream(
        "stream", {}, [&, at = size_t{0}](char* to, int64_t most) mutable {
          const size_t count = std::min(static_cast<size_t>(most), bytes->size() - at);
          std::memcpy(to, bytes->data() + at, count);
          at += count;
          return static_cast<int64_t>(count);
        }));
  });
  return 0;
}
