#include "data/packed_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/expect_error.h"

namespace fovea::train {
namespace {

using Row = std::vector<int64_t>;

TEST(PackedRows, BeginEachTextAtAMultipleOf64) {
  const std::vector<int32_t> lengths = {64, 65, 1, 63, 128};
  // 0 fills [0, 64), 1 [64, 129); 2 would begin at 192 and 3 at 256.
  EXPECT_EQ(PackedRows::packed(lengths, {0, 1, 2, 3, 4}, 200),
            (std::vector<Row>{{0, 1, 2}, {3, 4}}));
  EXPECT_EQ(PackedRows::packed(lengths, {4, 1}, 128 + 65), (std::vector<Row>{{4, 1}}));
  EXPECT_EQ(PackedRows::packed(lengths, {4, 1}, 128 + 64), (std::vector<Row>{{4}, {1}}));
  EXPECT_TRUE(PackedRows::packed(lengths, {}, 64).empty());
}

TEST(PackedRows, ContainEachTextOncePerEpochInADifferentOrder) {
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < 100; ++i) lengths.push_back(1 + i * 37 % 150);
  const PackedRows rows(lengths, {{0, 100, 1}}, 256, 3);
  std::vector<Row> epochs;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    Row& all = epochs.emplace_back();
    for (int64_t n = rows.rows(epoch); n < rows.rows(epoch + 1); ++n)
      for (const int64_t text : rows(n)) all.push_back(text);
    Row sorted = all;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(sorted.at(static_cast<size_t>(i)), i);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  // A row does not depend on those that were read before it.
  const PackedRows again(lengths, {{0, 100, 1}}, 256, 3), other(lengths, {{0, 100, 1}}, 256, 4);
  const int64_t last = rows.rows(3) - 1;
  EXPECT_EQ(again(last), rows(last));
  EXPECT_EQ(again(0), rows(0));
  EXPECT_NE(other(0), rows(0));
}

TEST(PackedRows, RepeatTextsByTheirWeights) {
  const PackedRows rows(std::vector<int32_t>(30, 10), {{0, 10, 2}, {10, 20, 0.5}, {20, 30, 1.2}},
                        64, 1);
  std::vector<std::map<int64_t, int>> epochs(2);
  for (int64_t n = 0; n < rows.rows(2); ++n)
    for (const int64_t text : rows(n)) ++epochs[n < rows.rows(1) ? 0 : 1][text];
  for (const auto& counts : epochs) {
    int drawn = 0, twice = 0;
    for (const auto& [text, count] : counts) {
      if (text < 10) {
        EXPECT_EQ(count, 2);
      }
      if (text >= 10 && text < 20) drawn += count;
      if (text >= 20) twice += count - 1;
    }
    EXPECT_EQ(drawn, 5);
    EXPECT_EQ(twice, 2);
  }
  EXPECT_NE(epochs[0], epochs[1]);  // each epoch draws other texts
}

TEST(PackedRows, RefuseLongTextsAndEmptyEpochs) {
  expect_error(ErrorKind::InvalidArgument, {"a text has 65 tokens; expected at most 64"},
               [] { PackedRows({65}, {{0, 1, 1}}, 64, 1); });
  expect_error(ErrorKind::InvalidArgument, {"an epoch contains no text"},
               [] { PackedRows({6}, {{0, 1, 0.1}}, 64, 1); });
}

}  // namespace
}  // namespace fovea::train
