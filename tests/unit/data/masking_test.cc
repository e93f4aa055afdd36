#include "data/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/expect_error.h"

namespace fovea::train {
namespace {

std::vector<int32_t> counting(int64_t count, int32_t first = 100) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

TEST(MaskTokens, MasksTheGivenFractionInThreeWays) {
  const Masking masking{.share = 0.15, .mask = 4, .ordinary = {7, 8, 9}};
  constexpr int64_t kCount = 100, kSamples = 1000;
  int64_t asked = 0, masked = 0, replaced = 0, kept = 0;
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    std::vector<int32_t> ids = counting(kCount), labels(kCount);
    mask_tokens(masking, 1, sample, kCount, ids.data(), labels.data());
    for (int32_t i = 0; i < kCount; ++i) {
      const auto at = static_cast<size_t>(i);
      if (labels[at] < 0) {
        EXPECT_EQ(ids[at], 100 + i);
        continue;
      }
      EXPECT_EQ(labels[at], 100 + i);
      ++asked;
      masked += ids[at] == 4;
      replaced += ids[at] >= 7 && ids[at] <= 9;
      kept += ids[at] == 100 + i;
    }
  }
  EXPECT_EQ(masked + replaced + kept, asked);
  EXPECT_NEAR(double(asked) / (kCount * kSamples), 0.15, 0.005);
  EXPECT_NEAR(double(masked) / double(asked), 0.8, 0.02);
  EXPECT_NEAR(double(replaced) / double(asked), 0.1, 0.02);
}

TEST(MaskTokens, DependsOnlyOnSeedAndSample) {
  const Masking masking{.share = 0.5, .mask = 4, .ordinary = {7, 8, 9}};
  const auto draw = [&](uint64_t seed, int64_t sample) {
    std::vector<int32_t> ids = counting(50), labels(50);
    mask_tokens(masking, seed, sample, 50, ids.data(), labels.data());
    return ids;
  };
  EXPECT_EQ(draw(1, 2), draw(1, 2));
  EXPECT_NE(draw(1, 2), draw(1, 3));
  EXPECT_NE(draw(1, 2), draw(2, 2));
}

// Source and target together contain every token of the window once, in order.
TEST(CutSpans, KeepEveryToken) {
  const SpanCutting cutting{.share = 0.3, .mean_span = 2, .gaps = counting(20, 1000), .end = 1};
  for (const int64_t count : {2, 3, 10, 37, 40}) {
    for (int64_t sample = 0; sample < 50; ++sample) {
      const std::vector<int32_t> window = counting(count);
      std::vector<int32_t> source(static_cast<size_t>(cutting.source_length(count)), -7),
          target(static_cast<size_t>(cutting.target_length(count)), -7);
      cut_spans(cutting, 1, sample, window.data(), count, source.data(), target.data());
      EXPECT_EQ(source.back(), 1);
      EXPECT_EQ(target.back(), 1);
      std::vector<int32_t> whole;
      for (size_t i = 0; i + 1 < source.size(); ++i) {
        if (source[i] < 1000) {
          whole.push_back(source[i]);
          continue;
        }
        auto at = std::find(target.begin(), target.end(), source[i]);
        ASSERT_NE(at, target.end());
        for (++at; *at < 1000 && *at != 1; ++at) whole.push_back(*at);
      }
      EXPECT_EQ(whole, window) << count << ", sample " << sample;
    }
  }
}

TEST(CutSpans, MatchTheLengthsOfT5) {
  SpanCutting cutting{.gaps = counting(100, 1000)};
  EXPECT_EQ(cutting.noise(568), 85);
  EXPECT_EQ(cutting.spans(568), 28);
  // Spans as in Raffel et al. 2020, 3.3.4; lengths as in T5's code: windows of 568 tokens fill a
  // source of 512, and the target has 114.
  EXPECT_EQ(cutting.longest_window(512), 568);
  EXPECT_EQ(cutting.source_length(568), 512);
  EXPECT_EQ(cutting.target_length(568), 114);
}

TEST(CutSpans, RequireAGapBetweenSpans) {
  SpanCutting cutting{.gaps = {5}};
  std::vector<int32_t> window = counting(100), source(200), target(200);
  expect_error(ErrorKind::InvalidArgument, {"spans: 5", "at most 1"},
               [&] { cut_spans(cutting, 1, 0, window.data(), 100, source.data(), target.data()); });
}

}  // namespace
}  // namespace fovea::train
