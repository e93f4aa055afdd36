#include "log/event_file.h"

#include <gtest/gtest.h>

#include "optim/schedule.h"

namespace fovea::train {
namespace {

// The values of RFC 3720, appendix B.4, before the rotation and the offset.
TEST(EventFile, ChecksumsAreMaskedCrc32c) {
  const auto unmasked = [](std::string_view bytes) {
    const uint32_t rotated = masked_crc32c(bytes) - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
  };
  EXPECT_EQ(unmasked(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(unmasked(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(unmasked("123456789"), 0xe3069283u);
}

TEST(Intervals, FollowTheSteps) {
  const auto chosen = [](int64_t steps) {
    TrainOptions o;
    o.steps = steps;
    choose_intervals(o);
    return std::vector<int64_t>{o.warmup, o.evaluate_every, o.sample_every};
  };
  EXPECT_EQ(chosen(2000), (std::vector<int64_t>{100, 250, 500}));
  EXPECT_EQ(chosen(100'000), (std::vector<int64_t>{100, 250, 500}));
  EXPECT_EQ(chosen(40), (std::vector<int64_t>{2, 5, 10}));
  EXPECT_EQ(chosen(1), (std::vector<int64_t>{0, 1, 1}));
  TrainOptions given;
  given.warmup = given.evaluate_every = given.sample_every = 0;
  choose_intervals(given);
  EXPECT_EQ(given.warmup + given.evaluate_every + given.sample_every, 0);
}

TEST(Schedules, DecayStartsWhereTheWarmUpEnds) {
  for (const Schedule kind : {Schedule::cosine, Schedule::linear, Schedule::trapezoid}) {
    const RateSchedule schedule{.kind = kind,
                                .peak = 1,
                                .final_rate = 0,
                                .steps = 100,
                                .warmup = 50,
                                .decay_fraction = 0.9};
    EXPECT_EQ(learning_rate(schedule, 50), 1);
    EXPECT_LT(learning_rate(schedule, 49), 1);
    EXPECT_LT(learning_rate(schedule, 51), 1);
    EXPECT_GT(learning_rate(schedule, 51), 0.95);
  }
  const RateSchedule linear{.kind = Schedule::linear, .peak = 1, .final_rate = 0.2, .steps = 100};
  EXPECT_DOUBLE_EQ(learning_rate(linear, 50), 0.6);
}

}  // namespace
}  // namespace fovea::train
