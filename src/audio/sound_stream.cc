#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <vector>

#include "audio/convert_sound.h"
#include "base/error.h"

namespace fovea {
namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
T value_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

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

  int64_t read(char* bytes, int64_t most) {
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

// Reads the format of the chunk "fmt " of a WAV file.
RawSound wave_format(const std::string& name, std::string_view chunk) {
  constexpr int kInteger = 1, kFloat = 3, kExtensible = 0xFFFE;
  int code = value_at<uint16_t>(chunk.data());
  const int bits = value_at<uint16_t>(chunk.data() + 14);
  if (code == kExtensible && chunk.size() >= 26) code = value_at<uint16_t>(chunk.data() + 24);
  RawSound raw;
  raw.rate = static_cast<double>(value_at<uint32_t>(chunk.data() + 4));
  raw.channels = value_at<uint16_t>(chunk.data() + 2);
  if (code == kInteger && bits == 8) {
    raw.type = SampleType::u8;
  } else if (code == kInteger && bits == 16) {
    raw.type = SampleType::s16;
  } else if (code == kInteger && bits == 32) {
    raw.type = SampleType::s32;
  } else if (code == kFloat && bits == 32) {
    raw.type = SampleType::f32;
  } else {
    fail(ErrorKind::Unsupported,
         "{}: has samples of WAV format {} with {} bits; expected integers of 8, 16 or 32 bits, or "
         "floats of 32, in a stream",
         name, code, bits);
  }
  return raw;
}

// Reads the chunks of a WAV file up to its samples. The lengths of the file and of the samples are
// ignored, since a program that writes to a pipe does not know them.
RawSound wave_header(const std::string& name, Pipe& pipe) {
  constexpr size_t kMostChunk = 1 << 20;  // other chunks are short descriptions
  pipe.skip(12);
  RawSound raw;
  for (bool known = false;;) {
    const std::string_view head = pipe.peek(8);
    if (head.size() < 8)
      fail(ErrorKind::BadFile,
           "{}: the WAV stream ends before its samples; expected a chunk 'data'", name);
    const bool data = head.starts_with("data"), format = head.starts_with("fmt ");
    const size_t length = value_at<uint32_t>(head.data() + 4);
    pipe.skip(8);
    if (data && known) return raw;
    if (data || length > kMostChunk || (format && length < 16))
      fail(ErrorKind::BadFile, "{}: the WAV stream has {}; expected a chunk 'fmt ' of at least 16",
           name, data ? "samples before their format" : fmt::format("a chunk of {} bytes", length));
    const size_t padded = length + length % 2;
    const std::string_view chunk = pipe.peek(padded);
    if (chunk.size() < length)
      fail(ErrorKind::BadFile, "{}: the WAV stream ends within its header", name);
    if (format) raw = wave_format(name, chunk);
    known = known || format;
    pipe.skip(padded);
  }
}

}  // namespace

SoundSource open_sound_stream(const std::string& name, const RawSound& raw, ByteReader reader) {
  const auto pipe = std::make_shared<Pipe>(std::move(reader));
  const std::string_view begin = pipe->peek(12);
  const bool wave = begin.size() == 12 && begin.starts_with("RIFF") && begin.substr(8) == "WAVE";
  const RawSound found = wave ? wave_header(name, *pipe) : raw;
  const int64_t width = bytes_of(found.type), frame = width * found.channels;
  auto bytes = std::make_shared<std::vector<char>>();
  return converted(name, found.rate, found.channels,
                   [pipe, found, width, frame, bytes](float* frames, int64_t most) {
                     // Returns what has arrived, at least one frame, so that partial results come
                     // early. An incomplete frame at the end is dropped.
                     while (std::ssize(*bytes) < frame) {
                       const auto before = std::ssize(*bytes);
                       bytes->resize(static_cast<size_t>(most * frame));
                       const int64_t some =
                           pipe->read(bytes->data() + before, most * frame - before);
                       bytes->resize(static_cast<size_t>(before + some));
                       if (some <= 0) return int64_t{0};
                     }
                     const int64_t count = std::ssize(*bytes) / frame;
                     for (int64_t i = 0; i < count * found.channels; ++i)
                       frames[i] = sample_at(bytes->data() + i * width, found.type);
                     bytes->erase(bytes->begin(), bytes->begin() + count * frame);
                     return count;
                   });
}

}  // namespace fovea
