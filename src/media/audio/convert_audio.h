#pragma once

#include <vector>

#include "fovea/media/audio.h"

namespace fovea::media {

constexpr double kLeastRate = 1000, kMostRate = 768'000;  // of samples per second
constexpr int64_t kMostChannels = 64;

// Reads interleaved frames [frames, channels]; returns their number, at most `most`; 0 = the end.
using FrameReader = std::function<int64_t(float* frames, int64_t most)>;

// Reads samples until the audio ends, but at most `most`.
std::vector<float> first_samples(const AudioSource& audio, int64_t most);

// Returns the mean of the channels at 16 kHz, resampled by libsoxr. Throws BadFile, naming `name`,
// if the rate or the number of channels is out of range.
AudioSource converted(const std::string& name, double rate, int64_t channels, FrameReader reader);

// Opens a pipe: a WAV file, whose samples are returned as they arrive; another file that
// open_audio() reads, which is read to its end first; or, if `raw` is not null, raw samples.
AudioSource open_piped_audio(const std::string& name, const RawAudio* raw, ByteReader reader);

}  // namespace fovea::media
