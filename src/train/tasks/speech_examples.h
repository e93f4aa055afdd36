#pragma once

#include <string>
#include <vector>

#include "data/length_batches.h"
#include "loop/examples.h"
#include "tasks/sequences.h"

namespace fovea::train {

// Files of audio of at most a window each, and the tokens that the decoder learns.
struct SpeechPairs {
  std::vector<std::string> files;
  Sequences labels;
  int64_t bytes = 0;  // of the texts
};

// Recordings with their texts. The recordings are read again for each batch, so that their number
// is not limited by memory.
class SpeechExamples : public Examples {
 public:
  struct Settings {
    int64_t bins = 0, frames = 0;  // of a spectrogram
    int64_t batch = 1;             // recordings in a forward pass
    int32_t start = 0, padding = 0;
    uint64_t seed = 0;
  };
  SpeechExamples(SpeechPairs training, SpeechPairs validation, const Settings& settings);

  Batch training(int64_t pass) const override { return of(training_, batches_(pass)); }
  double passes_per_epoch() const override { return static_cast<double>(batches_.batches()); }
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 private:
  Batch of(const SpeechPairs& pairs, const std::vector<int64_t>& samples) const;

  SpeechPairs training_, validation_;
  Settings settings_;
  LengthBatches batches_;
};

// Returns the scaled spectrogram of a file that is padded with silence: [bins, frames].
std::vector<float> spectrogram_of_file(const std::string& file, int64_t bins, int64_t frames);
// Returns whether a file has at most this number of frames of audio.
bool fits_in_window(const std::string& file, int64_t frames);

}  // namespace fovea::train
