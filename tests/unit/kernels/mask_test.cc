#include "fovea/core/op_options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace fovea {
namespace {

// Returns whether a query sees a key, by the definition in op_options.h.
bool sees(const Mask& mask, int64_t batch, int64_t query, int64_t key) {
  int64_t position = mask.first_query + query;
  if (!mask.valid.empty()) {
    const Interval& valid = mask.valid[static_cast<size_t>(batch)];
    if (key < valid.begin || key >= valid.end) return false;
  }
  if (mask.documents != nullptr) {
    int64_t begin = 0;
    for (const int64_t start : (*mask.documents)[static_cast<size_t>(batch)]) {
      if ((start <= position) != (start <= key)) return false;
      if (start <= position) begin = start;
    }
    position -= begin, key -= begin;
  }
  if (mask.causal && key < mask.prefix) return true;
  if (mask.causal && key > position) return false;
  return mask.window == 0 || std::abs(key - position) < mask.window || key < mask.global ||
         position < mask.global;
}

void expect_intervals(const Mask& mask, int64_t batch, int64_t query, int64_t keys) {
  Interval found[Mask::kMostIntervals];
  const int count = mask.intervals(batch, query, keys, found);
  ASSERT_LE(count, Mask::kMostIntervals);
  std::vector<bool> listed(static_cast<size_t>(keys));
  int64_t last = -1;
  for (int i = 0; i < count; ++i) {
    ASSERT_LT(last, found[i].begin) << "adjacent intervals are merged";
    ASSERT_LT(found[i].begin, found[i].end);
    ASSERT_LE(found[i].end, keys);
    last = found[i].end;
    for (int64_t key = found[i].begin; key < found[i].end; ++key)
      listed[static_cast<size_t>(key)] = true;
  }
  for (int64_t key = 0; key < keys; ++key)
    ASSERT_EQ(listed[static_cast<size_t>(key)], sees(mask, batch, query, key))
        << "key " << key << " of " << keys << ", query " << query << ", first " << mask.first_query
        << ", causal " << mask.causal << ", window " << mask.window << ", global " << mask.global
        << ", prefix " << mask.prefix << ", documents " << (mask.documents != nullptr);
}

TEST(Mask, GivesTheIntervalsOfItsDefinition) {
  std::mt19937 random(1);
  const auto upto = [&](int64_t most) { return static_cast<int64_t>(random()) % (most + 1); };
  for (int trial = 0; trial < 20000; ++trial) {
    const int64_t keys = upto(20);
    Mask mask;
    mask.causal = upto(1) == 0;
    mask.first_query = upto(2) * upto(12);
    mask.window = upto(1) * upto(10);
    mask.global = upto(1) * upto(24);
    mask.prefix = upto(1) * upto(24);
    if (upto(1) == 0) mask.valid = {{upto(30) - 5, upto(30) - 5}, {0, keys}};
    if (upto(1) == 0) {
      DocumentStarts starts(2, {0});
      for (std::vector<int64_t>& row : starts)
        for (int64_t more = upto(4); more > 0; --more) row.push_back(row.back() + 1 + upto(8));
      mask.documents = std::make_shared<const DocumentStarts>(std::move(starts));
    }
    for (int64_t query = 0; query < 12; ++query)
      for (int64_t batch = 0; batch < 2; ++batch)
        ASSERT_NO_FATAL_FAILURE(expect_intervals(mask, batch, query, keys));
  }
}

TEST(Mask, HandlesAnyWindow) {
  Mask mask;
  mask.window = std::numeric_limits<int64_t>::max();
  for (const bool causal : {false, true}) {
    mask.causal = causal;
    Interval seen[Mask::kMostIntervals];
    ASSERT_EQ(mask.intervals(0, 3, 9, seen), 1);
    EXPECT_EQ(seen[0].begin, 0);
    EXPECT_EQ(seen[0].end, causal ? 4 : 9);
  }
}

}  // namespace
}  // namespace fovea
