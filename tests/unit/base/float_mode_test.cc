#include "base/float_mode.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/threads.h"

namespace fovea {
namespace {

// Returns whether denormal numbers are kept and 1 + 3/4 ulp is rounded up to 1 + 1 ulp.
bool keeps_denormals_and_rounds_to_nearest() {
  volatile double tiny = std::numeric_limits<double>::min(), one = 1, three_quarters = 0x1.8p-53;
  return tiny / 2 > 0 && one + three_quarters == 1 + 0x1p-52;
}

TEST(FloatMode, IsDefaultInAScopeAndRestoredAfterwards) {
  for (const FloatModeBits callers : {kFlushToZero, kTowardZero}) {
    const FloatMode outer(callers);
    EXPECT_FALSE(keeps_denormals_and_rounds_to_nearest());
    {
      const FloatMode inner;
      EXPECT_TRUE(keeps_denormals_and_rounds_to_nearest());
      EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    }
    EXPECT_EQ(FloatMode::current(), callers);
  }
  EXPECT_EQ(FloatMode::current(), kDefaultFloatMode);
}

// glibc's strtod rounds according to the mode; on x86, to the x87 control word.
TEST(FloatMode, AppliesToParsingNumbers) {
  const FloatMode outer(kTowardZero);
  const FloatMode inner;
  EXPECT_EQ(std::strtod("0.1", nullptr), 0x1.999999999999ap-4);
}

// A thread inherits the mode of the thread that creates it (here, one that flushes denormals).
// Parallel work must use the mode of its caller instead.
TEST(FloatMode, AppliesToTheThreadsOfTheTeam) {
  const int before = thread_count();
  set_threads(2);
  const auto modes = [](bool tasks) {
    std::vector<FloatModeBits> found(2);
    const auto look = [&](int64_t i) { found[static_cast<size_t>(i)] = FloatMode::current(); };
    if (tasks) {
      parallel_tasks(2, look);
    } else {
      parallel_for(2, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) look(i);
      });
    }
    return found;
  };
  for (const bool tasks : {false, true}) {
    const FloatMode outer(kFlushToZero);
    EXPECT_EQ(modes(tasks), std::vector<FloatModeBits>(2, kFlushToZero));
    const FloatMode inner;
    EXPECT_EQ(modes(tasks), std::vector<FloatModeBits>(2, kDefaultFloatMode));
  }
  set_threads(before);
}

}  // namespace
}  // namespace fovea
