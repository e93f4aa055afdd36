#include "loop/divergence.h"

#include <gtest/gtest.h>

#include <functional>

namespace fovea::train {
namespace {

using Verdict = DivergenceGuard::Verdict;

// Returns the steps of the first warning and of the stop; 0 = none.
std::pair<int64_t, int64_t> verdicts(int64_t warmup, int64_t steps,
                                     const std::function<double(int64_t)>& loss,
                                     bool resumes = false) {
  DivergenceGuard guard(warmup);
  std::pair<int64_t, int64_t> found;
  for (int64_t step = 1; step <= steps && found.second == 0; ++step) {
    const Verdict verdict = guard.see(step, loss(step));
    if (verdict == Verdict::warns && found.first == 0) found.first = step;
    if (verdict == Verdict::stops) found.second = step;
    if (!resumes) continue;
    DivergenceGuard again(warmup);
    again.restore(nlohmann::json::parse(guard.state().dump()));
    guard = again;
  }
  return found;
}

TEST(DivergenceGuard, StopsALossThatStaysHigh) {
  const auto jumps = [](int64_t step) { return step <= 60 ? 2.0 : 3.9; };
  // The mean of 20 losses is above 2.2 from step 63 on, and above 2.6 from step 67 on.
  EXPECT_EQ(verdicts(10, 400, jumps), (std::pair<int64_t, int64_t>{112, 166}));
  EXPECT_EQ(verdicts(10, 400, jumps, true), verdicts(10, 400, jumps));
}

TEST(DivergenceGuard, WarnsOfALossThatRisesByAFifth) {
  const auto rises = [](int64_t step) { return step <= 60 ? 2.0 : 2.4; };
  const auto [warning, stop] = verdicts(10, 1000, rises);
  EXPECT_GT(warning, 60);
  EXPECT_EQ(stop, 0);
}

TEST(DivergenceGuard, SeesARunThatFallsInTheWarmUpAndThenDiverges) {
  const auto diverges = [](int64_t step) {
    return step <= 40 ? 5.5 - 0.075 * static_cast<double>(step) : step <= 120 ? 2.4 : 3.6;
  };
  EXPECT_GT(verdicts(40, 400, diverges).second, 0);
}

TEST(DivergenceGuard, AcceptsHealthyRuns) {
  const auto noisy = [](int64_t step) { return 2 + 0.1 * static_cast<double>(step * 7 % 11 - 5); };
  const auto spike = [](int64_t step) { return step > 100 && step < 120 ? 9.0 : 2.0; };
  const auto tiny = [](int64_t step) { return step < 50 ? 0.01 : 0.02; };
  const auto none = std::pair<int64_t, int64_t>{0, 0};
  EXPECT_EQ(verdicts(10, 2000, noisy), none);
  EXPECT_EQ(verdicts(10, 2000, spike), none);
  EXPECT_EQ(verdicts(10, 2000, tiny), none);
  EXPECT_EQ(verdicts(0, 30, [](int64_t step) { return static_cast<double>(step); }), none);
}

TEST(RewardWatch, WarnsOfJumpsAndOfDivergence) {
  RewardWatch watch;
  EXPECT_EQ(watch.see({{"margin", 0}}), "");
  EXPECT_EQ(watch.see({{"margin", 0.5}}), "");
  EXPECT_NE(watch.see({{"margin", 6.4}}).find("margin of the rewards jumps"), std::string::npos);
  EXPECT_EQ(watch.see({{"margin", 20}}), "") << "one warning for some time";
  RewardWatch steady;
  for (int step = 0; step < 100; ++step)
    EXPECT_EQ(steady.see({{"reward", step % 3 * 0.1}, {"kl", 0.1}, {"margin", step * 0.02}}), "");
  EXPECT_NE(steady.see({{"reward", 5}}).find("reward jumps"), std::string::npos);
  RewardWatch runs_away;
  EXPECT_NE(runs_away.see({{"kl", 2}}).find("divergence from the initial model is 2"),
            std::string::npos);
  RewardWatch restored;
  restored.restore(nlohmann::json::parse(runs_away.state().dump()));
  EXPECT_EQ(restored.see({{"kl", 3}}), "");
}

TEST(Samples, ThatRepeatAreFound) {
  std::string words = "The answer is", letters;
  for (int i = 0; i < 20; ++i) words += " of.";
  EXPECT_EQ(repeated_piece(words), " of.");
  EXPECT_EQ(repeated_piece("Once " + std::string(60, 'a')), "a");
  std::string most;
  for (int i = 0; i < 30; ++i) most += (i % 4 == 0 ? std::to_string(i * i) : "truth") + " ";
  EXPECT_EQ(repeated_piece(most), "truth");
  EXPECT_EQ(repeated_piece("First Citizen: before we proceed any further, hear me speak. Speak, "
                           "speak. You are all resolved rather to die than to famish?"),
            "");
  EXPECT_EQ(repeated_piece("no no no no"), "") << "too short to tell";
}

}  // namespace
}  // namespace fovea::train
