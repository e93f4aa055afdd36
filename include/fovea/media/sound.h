#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fovea::media {

// Sound as mono samples in [-1, 1] at 16 kHz. Writes at most `most` samples and returns their
// number; 0 = the end. May wait for a pipe or a device. Throws BadFile if the sound is damaged or a
// sample is not finite.
using SoundSource = std::function<int64_t(float* samples, int64_t most)>;

// Opens a file of any rate and number of channels that libsndfile decodes: WAV, FLAC, Ogg Vorbis,
// Opus, MP3 and others; or, where FFmpeg's libraries are installed, MP4 (m4a) and Matroska (webm).
// Throws InvalidArgument if there is no such file, BadFile if it is damaged or no sound, and
// Unsupported for MP4 and Matroska without these libraries.
SoundSource open_sound(const std::string& path);
// Does the same for the bytes of a file; errors name `name`.
SoundSource open_sound(std::shared_ptr<const std::string> bytes, const std::string& name);

// Sound from a pipe: a WAV file, whose header need not know its length, or else raw samples,
// little-endian and with interleaved channels.
enum class SampleType { s16, s32, f32, u8 };
struct RawSound {
  SampleType type = SampleType::s16;
  double rate = 16000;  // samples per second
  int64_t channels = 1;
};
// Reads at most `most` bytes and returns their number; 0 = the end.
using ByteReader = std::function<int64_t(char* bytes, int64_t most)>;
SoundSource open_sound_stream(const std::string& name, const RawSound& raw, ByteReader reader);

}  // namespace fovea::media
