#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "audio/audio_format.h"
#include "audio/convert_audio.h"
#include "base/error.h"

namespace fovea::media {
namespace {

int64_t bytes_of(SampleType type) {
  switch (type) {
    case SampleType::u8: return 1;
    case SampleType::s16: return 2;
    case SampleType::s32:
    case SampleType::f32: return 4;
  }
  return 0;
}

float sample_at(const char* bytes, SampleType type) {
  switch (type) {
    case SampleType::u8: return static_cast<float>(value_at<uint8_t>(bytes) - 128) / 128;
    case SampleType::s16: return static_cast<float>(value_at<int16_t>(bytes)) / 32768;
    case SampleType::s32: return static_cast<float>(value_at<int32_t>(bytes) / 2147483648.0);
    case SampleType::f32: return value_at<float>(bytes);
  }
  return 0;
}

// Bytes of a pipe, of which the first can be looked at before they are read.
class Pipe {
 public:
  explicit Pipe(ByteReader reader) : reader_(std::move(reader)) {}

  // Returns the next bytes without reading them: `count`, or fewer at the end.
  std::string_view peek(size_t count) {
    while (ahead_.size() < count) {
      char bytes[4096];
      const int64_t some = reader_(bytes, std::ssize(bytes));
      if (some <= 0) break;
      ahead_.append(bytes, static_cast<size_t>(some));
    }
    return std::string_view(ahead_).substr(0, count);
  }
  void skip(size_t count) { ahead_.erase(0, count); }
  std::string rest() {
    size_t before = 0;
    do {
      before = ahead_.size();
      peek(before + 1);
    } while (ahead_.size() > before);
    return std::move(ahead_);
  }

  int64_t read(char* bytes, int64_t most) {
    if (most == 0) return 0;
    if (ahead_.empty()) return reader_(bytes, most);
    const auto some = std::min<size_t>(static_cast<size_t>(most), ahead_.size());
    std::memcpy(bytes, ahead_.data(), some);
    skip(some);
    return static_cast<int64_t>(some);
  }

 private:
  ByteReader reader_;
  std::string ahead_;
};

// Returns what has arrived of samples without a header, at least one frame, so that partial results
// come early. An incomplete frame at the end is dropped.
AudioSource samples_of(const std::string& name, const std::shared_ptr<Pipe>& pipe,
                       const RawAudio& raw, uint64_t length) {
  const int64_t width = bytes_of(raw.type), frame = width * raw.channels;
  auto bytes = std::make_shared<std::vector<char>>();
  const auto left = std::make_shared<uint64_t>(length);
  return converted(name, raw.rate, raw.channels,
                   [pipe, raw, width, frame, bytes, left](float* frames, int64_t most) {
                     while (std::ssize(*bytes) < frame) {
                       const auto before = std::ssize(*bytes);
                       bytes->resize(static_cast<size_t>(most * frame));
                       const auto wanted = static_cast<int64_t>(
                           std::min(static_cast<uint64_t>(most * frame - before), *left));
                       const int64_t some = pipe->read(bytes->data() + before, wanted);
                       bytes->resize(static_cast<size_t>(before + std::max<int64_t>(some, 0)));
                       if (some <= 0) return int64_t{0};
                       *left -= static_cast<uint64_t>(some);
                     }
                     const int64_t count = std::ssize(*bytes) / frame;
                     for (int64_t i = 0; i < count * raw.channels; ++i)
                       frames[i] = sample_at(bytes->data() + i * width, raw.type);
                     bytes->erase(bytes->begin(), bytes->begin() + count * frame);
                     return count;
                   });
}

}  // namespace

AudioSource open_piped_audio(const std::string& name, const RawAudio* raw, ByteReader reader) {
  const auto pipe = std::make_shared<Pipe>(std::move(reader));
  const FirstBytes first = [&](size_t count) { return pipe->peek(count); };
  const auto wave = wave_header(first);
  if (wave && !wave->problem.empty())
    fail(ErrorKind::BadFile, "{}: the WAV stream {}", name, wave->problem);
  if (wave && wave->plain) {
    pipe->skip(wave->begin);
    return samples_of(name, pipe, wave->raw, wave->bytes);
  }
  if (raw == nullptr || begins_audio_file(first))
    return open_audio(std::make_shared<const std::string>(pipe->rest()), name);
  return samples_of(name, pipe, *raw, kToTheEnd);
}

AudioSource open_audio_stream(const std::string& name, const RawAudio& raw, ByteReader reader) {
  return open_piped_audio(name, &raw, std::move(reader));
}

}  // namespace fovea::media
