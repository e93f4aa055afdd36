#pragma once

// How the bytes of an audio file begin.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "fovea/media/audio.h"

namespace fovea::media {

static_assert(std::endian::native == std::endian::little);
// Reads a number of a file, little-endian.
template <class T>
T value_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// Returns the first `count` bytes of a file or a stream, or fewer at its end. The result is valid
// until the next call.
using FirstBytes = std::function<std::string_view(size_t count)>;

// The header of a WAV file.
struct WaveHeader {
  RawAudio raw;
  bool plain = false;        // whether the samples are of a SampleType
  size_t begin = 0;          // where the samples begin; the size of their chunk is before it
  uint64_t bytes = 0;        // of the samples; the largest number if the header does not know it
  std::string problem = {};  // why the samples cannot be found; empty = they were
};
constexpr uint64_t kToTheEnd = UINT64_MAX;

// Returns the header of a WAV file (RIFF or RF64); nothing if the bytes do not begin with one.
std::optional<WaveHeader> wave_header(const FirstBytes& first);

// Returns whether the bytes begin a file that libsndfile or FFmpeg may decode, rather than samples
// without a header. MP3 and AAC have no name at the beginning: two frames in sequence are expected.
bool begins_audio_file(const FirstBytes& first);

}  // namespace fovea::media
