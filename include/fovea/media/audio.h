#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fovea::media {

// Audio as mono samples in [-1, 1] at 16 kHz. Writes at most `most` samples and returns their
// number; 0 = the end. May wait for a pipe or a device. Throws BadFile if the audio is damaged or a
// sample is not finite.
using AudioSource = std::function<int64_t(float* samples, int64_t most)>;

// Opens a file of any rate and number of channels that libsndfile decodes: WAV, FLAC, Ogg Vorbis,
// Opus, MP3 and others; or, where FFmpeg's libraries are installed, MP4 (m4a) and Matroska (webm).
// Throws InvalidArgument if there is no such file, BadFile if it is damaged or not audio, and
// Unsupported for MP4 and Matroska without these libraries.
AudioSource open_audio(const std::string& path);
// Does the same for the bytes of a file; errors name `name`.
AudioSource open_audio(std::shared_ptr<const std::string> bytes, const std::string& name);

// Audio from a pipe: a WAV file, whose header need not know its length, or else raw samples,
// little-endian and with interleaved channels.
enum class SampleType { s16, s32, f32, u8 };
struct RawAudio {
  SampleType type = SampleType::s16;
  double rate = 16000;  // samples per second
  int64_t channels = 1;
};
// Reads at most `most` bytes and returns their number; 0 = the end.
using ByteReader = std::function<int64_t(char* bytes, int64_t most)>;
AudioSource open_audio_stream(const std::string& name, const RawAudio& raw, ByteReader reader);

}  // namespace fovea::media
