#pragma once

#include <cstdio>
#include <memory>
#include <vector>

#include "audio/log_mel.h"

namespace fovea::infer {

// The logarithmic spectrogram of a recording of any length, in a temporary file: 115 MB per hour
// with 80 bins.
class SpectrogramFile {
 public:
  // `window`: frames that the model reads at a time.
  SpectrogramFile(int64_t bins, int64_t window);
  void add(const float* samples, int64_t count);
  // Ends the audio. One that is shorter than a window is padded with silence to a window.
  void finish();

  int64_t frames() const { return frames_; }                       // computed so far
  double seconds() const;                                          // of audio
  int64_t audio_frames() const { return samples_ / media::kHop; }  // without padding
  float peak() const { return peak_; }                             // largest logarithm so far
  // The logarithm of each frame's loudest band.
  const std::vector<float>& levels() const { return levels_; }
  // Returns the scaled frames [first, first + window), row-major [bins, window]; those that do not
  // exist are 0, as in the library transformers.
  std::vector<float> window_at(int64_t first) const;

 private:
  void store(const float* frames, int64_t count);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  int64_t bins_, window_, frames_ = 0, samples_ = 0;
  float peak_ = -10;
  std::vector<float> levels_;
  std::unique_ptr<std::FILE, Close> file_;
  media::LogMelStream stream_;
};

}  // namespace fovea::infer
