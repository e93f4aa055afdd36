#include "generate/speculation_length.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace fovea::infer {
namespace {

struct Sums {
  int64_t speculative = 0, tokens = 0;  // rows spent on speculative tokens; generated tokens
};

// Runs `steps` passes, in which speculative token number i (from 0) of a text is accepted if
// accepts(i).
Sums run(SpeculationLength& count, int64_t steps, const std::function<bool(int64_t)>& accepts,
         const PassLoad& load = {}) {
  Sums sums;
  int64_t number = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t proposed = count.choose(load, 64);
    int64_t accepted = 0;
    while (accepted < proposed && accepts(number++)) ++accepted;
    count.update(std::min(accepted + 1, proposed), accepted);
    sums.speculative += proposed;
    sums.tokens += 1 + accepted;
  }
  return sums;
}

bool always(int64_t) { return true; }
bool never(int64_t) { return false; }

TEST(SpeculationLengths, GrowWhileTokensAreAccepted) {
  SpeculationLength count(0.5);
  EXPECT_GT(run(count, 50, always).tokens, 50 * 10);
  EXPECT_EQ(count.choose({}, 64), SpeculationLength::kMost);
  EXPECT_EQ(count.choose({}, 3), 3);
  EXPECT_EQ(count.choose({}, 0), 0);
}

TEST(SpeculationLengths, SoonBecomeZeroIfTokensAreRejected) {
  for (const double expected : {0.5, 0.65, 0.75, 0.8}) {
    SpeculationLength count(expected);
    EXPECT_LE(run(count, 50, never).speculative, 12) << expected;
    EXPECT_LE(run(count, 10'000, never).speculative, 45) << expected;  // one trial in 256 steps
  }
}

TEST(SpeculationLengths, RecoverWhenTheTextChanges) {
  SpeculationLength count(0.5);
  run(count, 5000, never);
  EXPECT_GT(run(count, 300, always).tokens, 700);  // after at most 256 steps
  EXPECT_GT(run(count, 100, always).tokens, 1500);
  EXPECT_LE(run(count, 100, never).speculative, 50);
}

// More speculative tokens pay if more of them are accepted.
TEST(SpeculationLengths, DependOnTheAcceptance) {
  double previous = 0;
  for (const int64_t period : {2, 4, 8, 16}) {  // one token of each period is rejected
    SpeculationLength count(0.5);
    const Sums sums = run(count, 2000, [&](int64_t i) { return i % period != 0; });
    const double mean = static_cast<double>(sums.speculative) / 2000;
    EXPECT_GT(mean, previous) << period;
    previous = mean;
  }
}

TEST(SpeculationLengths, DependOnTheNumberOfTexts) {
  SpeculationLength count(0.8);
  int64_t previous = SpeculationLength::kMost;
  for (const int64_t texts : {1, 2, 4, 8, 64}) {
    const int64_t proposed = count.choose({.texts = texts}, 64);
    EXPECT_LE(proposed, previous) << texts;
    previous = proposed;
  }
  EXPECT_EQ(previous, 0);
}

TEST(SpeculationLengths, DependOnTheTimeOfTheDraft) {
  const auto proposed = [](double draft) {
    SpeculationLength count(0.75);
    return run(count, 200, always, {.draft = draft}).speculative;
  };
  EXPECT_GT(proposed(0.02), proposed(0.4));
  EXPECT_GT(proposed(0.4), 0);
  EXPECT_EQ(proposed(1), 0);  // as slow as the model
}

}  // namespace
}  // namespace fovea::infer
