#include "generate/speculation_length.h"

#include <algorithm>

namespace fovea::infer {
namespace {

// Time of one more row in a pass, relative to a pass over one row. Most of a pass is spent on
// reading the weights, which all rows share. Measured: 0.2 (docs/commands/generate.md); the rest is
// a margin.
constexpr double kRow = 0.25;
// Weight of a checked token, relative to the next one.
constexpr double kDecay = 0.9;
// The expected acceptance counts as much as this number of checked tokens.
constexpr double kPriorTokens = 2;

// Returns the number of speculative tokens, 0 to `most`, with which the texts get the most tokens
// in the same time if each token is accepted with probability `acceptance` once those before it
// are.
int64_t best_count(double acceptance, const PassLoad& load, int64_t most) {
  const auto texts = static_cast<double>(load.texts);
  const double plain = 1 + kRow * (texts - 1);
  double tokens = 1, chance = 1, best_speed = 1 / plain;
  int64_t best = 0;
  for (int64_t count = 1; count <= most; ++count) {
    chance *= acceptance;
    tokens += chance;
    const auto k = static_cast<double>(count);
    const double speed = tokens / (plain + kRow * texts * k + load.draft * plain * k);
    if (speed <= best_speed) break;
    best = count, best_speed = speed;
  }
  return best;
}

}  // namespace

SpeculationLength::SpeculationLength(double expected) : expected_(expected) { begin(); }

void SpeculationLength::begin() {
  accepted_ = kPriorTokens * expected_;
  checked_ = kPriorTokens;
  pause_ = wait_ = kFirstPause;
}

int64_t SpeculationLength::choose(const PassLoad& load, int64_t most) {
  trial_ = false;
  const int64_t count = best_count(acceptance(), load, std::min(most, kMost));
  if (count > 0 || best_count(1, load, std::min(most, kMost)) == 0) return count;
  if (wait_ > 0) {
    --wait_;
    return 0;
  }
  wait_ = pause_;
  trial_ = true;
  return 1;
}

void SpeculationLength::update(int64_t checked, int64_t accepted) {
  if (checked == 0) return;
  if (trial_ && accepted > 0) {
    begin();  // the text may have changed
  } else if (trial_) {
    pause_ = wait_ = std::min(2 * pause_, kLongestPause);
  }
  trial_ = false;
  for (int64_t i = 0; i < checked; ++i) {
    accepted_ = kDecay * accepted_ + (i < accepted ? 1 : 0);
    checked_ = kDecay * checked_ + 1;
  }
}

}  // namespace fovea::infer
