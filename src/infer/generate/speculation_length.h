#pragma once

#include <cstdint>

namespace fovea::infer {

// What determines the time of a pass with speculative tokens.
struct PassLoad {
  int64_t texts = 1;  // texts in the pass
  double draft = 0;   // time to propose one token, relative to a pass over one token
};

// Chooses how many tokens to propose after a text, from the part of the earlier speculative tokens
// that was accepted: the number that gives the most tokens in the same time. If no number pays, it
// stops, and tries one token from time to time. Text whose speculative tokens are never accepted
// therefore costs a few rows at its beginning and one row in 256 steps later.
class SpeculationLength {
 public:
  static constexpr int64_t kMost = 15;  // more speculative tokens than this rarely pay

  // `expected`: the assumed acceptance of the first speculative tokens, 0 to 1.
  explicit SpeculationLength(double expected);

  // Returns the number of tokens to propose, 0 to `most`.
  int64_t choose(const PassLoad& load, int64_t most);
  // The model compared `checked` speculative tokens, up to the first that it rejected, and accepted
  // `accepted`.
  void update(int64_t checked, int64_t accepted);
  double acceptance() const { return accepted_ / checked_; }  // running average

 private:
  void begin();

  static constexpr int64_t kFirstPause = 16, kLongestPause = 256;

  double expected_;
  double accepted_ = 0, checked_ = 0;  // sums with weights that decay
  int64_t pause_ = kFirstPause;        // steps from one trial to the next
  int64_t wait_ = 0;                   // remaining steps before the next trial
  bool trial_ = false;                 // the latest proposal is a trial
};

}  // namespace fovea::infer
