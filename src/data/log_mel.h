#pragma once

#include <cstdint>
#include <vector>

namespace fovea {

constexpr int64_t kSampleRate = 16000;  // sample rate of speech models
constexpr int64_t kHop = 160;           // samples between frames: 10 ms

// Returns the log-mel spectrogram of a waveform, as in speech models (Radford et al. 2022, section
// 2.2): windows of 25 ms every 10 ms; power in `bins` triangular bands, evenly spaced on Slaney's
// mel scale up to 8 kHz; decimal logarithm of the power, clamped to at most 8 below the largest and
// scaled to about [-1, 1]. The waveform is cut or padded with silence to `frames` frames.
// waveform at 16 kHz, in [-1, 1] -> [bins, frames], row-major
std::vector<float> log_mel(const std::vector<float>& waveform, int64_t bins, int64_t frames);

}  // namespace fovea
