#include "metrics/bootstrap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/threads.h"

namespace fovea::infer {
namespace {

double fraction_below_800(const std::vector<int32_t>& texts) {
  double below = 0;
  for (const int32_t text : texts) below += text < 800;
  return below / static_cast<double>(texts.size());
}

// The standard error of a fraction p of n texts is sqrt(p (1 - p) / n).
TEST(Bootstrap, GivesTheIntervalOfAFraction) {
  constexpr int64_t kCount = 1000;
  const double error = std::sqrt(0.8 * 0.2 / kCount);
  for (const int64_t samples : {1000, 4000}) {
    const Estimate e = bootstrap(kCount, samples, 1, fraction_below_800);
    EXPECT_EQ(e.value, 0.8);
    EXPECT_NEAR(e.low, 0.8 - 1.96 * error, 0.2 * error) << samples;
    EXPECT_NEAR(e.high, 0.8 + 1.96 * error, 0.2 * error) << samples;
  }
}

TEST(Bootstrap, DependsOnTheSeed) {
  const auto mean = [](const std::vector<int32_t>& texts) {
    return std::accumulate(texts.begin(), texts.end(), 0.0) / static_cast<double>(texts.size());
  };
  EXPECT_EQ(bootstrap(500, 100, 1, mean).low, bootstrap(500, 100, 1, mean).low);
  EXPECT_NE(bootstrap(500, 100, 1, mean).low, bootstrap(500, 100, 2, mean).low);
}

TEST(Bootstrap, DoesNotDependOnTheNumberOfThreads) {
  const int before = thread_count();
  std::vector<double> lows;
  for (const int count : {1, 3}) {
    set_threads(count);
    lows.push_back(bootstrap(1000, 200, 7, fraction_below_800).low);
  }
  set_threads(before);
  EXPECT_EQ(lows[0], lows[1]);
}

}  // namespace
}  // namespace fovea::infer
