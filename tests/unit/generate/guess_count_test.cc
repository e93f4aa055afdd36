#include "generate/guess_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace fovea::infer {
namespace {

struct Sums {
  int64_t guessed = 0, tokens = 0;  // rows spent on guesses; generated tokens
};

// Runs `steps` passes, in which guess number i (from 0) of a text is accepted if accepts(i).
Sums run(GuessCount& count, int64_t steps, const std::function<bool(int64_t)>& accepts,
         const PassLoad& load = {}) {
  Sums sums;
  int64_t number = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t guesses = count.choose(load, 64);
    int64_t accepted = 0;
    while (accepted < guesses && accepts(number++)) ++accepted;
    count.update(std::min(accepted + 1, guesses), accepted);
    sums.guessed += guesses;
    sums.tokens += 1 + accepted;
  }
  return sums;
}

bool always(int64_t) { return true; }
bool never(int64_t) { return false; }

TEST(GuessCounts, GrowWhileGuessesAreAccepted) {
  GuessCount count(0.5);
  EXPECT_GT(run(count, 50, always).tokens, 50 * 10);
  EXPECT_EQ(count.choose({}, 64), GuessCount::kMost);
  EXPECT_EQ(count.choose({}, 3), 3);
  EXPECT_EQ(count.choose({}, 0), 0);
}

TEST(GuessCounts, SoonBecomeZeroIfGuessesAreRejected) {
  for (const double expected : {0.5, 0.65, 0.75, 0.8}) {
    GuessCount count(expected);
    EXPECT_LE(run(count, 50, never).guessed, 12) << expected;
    EXPECT_LE(run(count, 10'000, never).guessed, 45) << expected;  // one trial in 256 steps
  }
}

TEST(GuessCounts, RecoverWhenTheTextChanges) {
  GuessCount count(0.5);
  run(count, 5000, never);
  EXPECT_GT(run(count, 300, always).tokens, 700);  // after at most 256 steps
  EXPECT_GT(run(count, 100, always).tokens, 1500);
  EXPECT_LE(run(count, 100, never).guessed, 50);
}

// More guesses pay if more of them are accepted.
TEST(GuessCounts, DependOnTheAcceptance) {
  double previous = 0;
  for (const int64_t period : {2, 4, 8, 16}) {  // one guess of each period is rejected
    GuessCount count(0.5);
    const Sums sums = run(count, 2000, [&](int64_t i) { return i % period != 0; });
    const double mean = static_cast<double>(sums.guessed) / 2000;
    EXPECT_GT(mean, previous) << period;
    previous = mean;
  }
}

TEST(GuessCounts, DependOnTheNumberOfTexts) {
  GuessCount count(0.8);
  int64_t previous = GuessCount::kMost;
  for (const int64_t texts : {1, 2, 4, 8, 64}) {
    const int64_t guesses = count.choose({.texts = texts}, 64);
    EXPECT_LE(guesses, previous) << texts;
    previous = guesses;
  }
  EXPECT_EQ(previous, 0);
}

TEST(GuessCounts, DependOnTheTimeOfTheDraft) {
  const auto guesses = [](double draft) {
    GuessCount count(0.75);
    return run(count, 200, always, {.draft = draft}).guessed;
  };
  EXPECT_GT(guesses(0.02), guesses(0.4));
  EXPECT_GT(guesses(0.4), 0);
  EXPECT_EQ(guesses(1), 0);  // as slow as the model
}

}  // namespace
}  // namespace fovea::infer
