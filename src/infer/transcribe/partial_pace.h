#pragma once

#include <cstdint>
#include <vector>

namespace fovea::infer {

// Decides when a stream gets a further partial result: about twice per second of voice, less often
// while the text remains the same, and never for silence.
class PartialPace {
 public:
  // levels: of all frames so far (voice.h); start: frame at which the next window begins
  bool is_due(const std::vector<float>& levels, int64_t start) const;
  // A result of the first `frames` frames took `seconds`; changed: whether its text is a new one.
  void reported(int64_t frames, double seconds, bool changed);

 private:
  int64_t frames_ = 0;  // of the last result
  double cost_ = 0;     // seconds that it took
  double wait_ = 0;     // seconds of new audio before the next one
};

}  // namespace fovea::infer
