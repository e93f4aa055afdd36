#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace fovea::media {

constexpr int64_t kSampleRate = 16000;  // sample rate of speech models
constexpr int64_t kHop = 160;           // samples between frames: 10 ms

constexpr double seconds_of(int64_t frames) {
  return static_cast<double>(frames * kHop) / static_cast<double>(kSampleRate);
}

// Computes the log-mel spectrogram of a waveform that arrives in pieces, as in speech models
// (Radford et al. 2022, section 2.2): windows of 25 ms every 10 ms, of which the first is centred
// at the first sample; power in `bins` triangular bands, evenly spaced on Slaney's mel scale up to
// 8 kHz; decimal logarithm of the power, at least -10. The waveform is extended by half a window at
// each end, a mirror image of the samples there.
class LogMelStream {
 public:
  // Receives frames [count, bins], which are valid during the call only.
  using Sink = std::function<void(const float* frames, int64_t count)>;

  LogMelStream(int64_t bins, Sink sink);
  void add(const float* samples, int64_t count);  // at kSampleRate, in [-1, 1]
  // Ends the waveform. There are samples / kHop frames, rounded down.
  void finish();
  int64_t samples() const { return received_; }

 private:
  void compute(int64_t count);

  int64_t bins_;
  Sink sink_;
  std::vector<double> filters_;                     // [bins, frequencies]
  std::vector<std::pair<int64_t, int64_t>> bands_;  // frequencies [first, last) of each filter
  std::vector<float> waiting_;  // samples from the beginning of the next frame's window
  int64_t received_ = 0, frames_ = 0;
};

// Returns the triangular filters of the bands, of equal area; each extends from the centre of its
// left neighbour to the centre of its right neighbour.
// -> [bins, 201 frequencies up to 8 kHz]
std::vector<double> mel_filters(int64_t bins);

// Scales logarithms in place, as the input of a model: clamped to at most 8 below the largest,
// which is `peak`, and scaled to about [-1, 1].
void scale_log_mel(std::vector<float>& logs, float peak);

// Returns the scaled spectrogram of a waveform that is cut or padded with silence to `frames`
// frames. waveform at 16 kHz, in [-1, 1] -> [bins, frames], row-major
std::vector<float> log_mel(const std::vector<float>& waveform, int64_t bins, int64_t frames);

}  // namespace fovea::media
