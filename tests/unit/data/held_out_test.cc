#include "data/held_out.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea::train {
namespace {

std::vector<int64_t> held_out(int64_t count, double fraction) {
  std::vector<int64_t> found;
  for (int64_t i = 0; i < count; ++i)
    if (is_held_out(i, fraction)) found.push_back(i);
  return found;
}

TEST(HeldOut, AreSpreadEvenly) {
  EXPECT_EQ(held_out(20, 0.25), (std::vector<int64_t>{3, 7, 11, 15, 19}));
  EXPECT_EQ(held_out(10, 0.4), (std::vector<int64_t>{2, 4, 7, 9}));
  EXPECT_EQ(held_out(9, 0.1), std::vector<int64_t>());
  EXPECT_EQ(held_out(9, 0), std::vector<int64_t>());
  EXPECT_EQ(held_out(1000, 0.1).size(), 100u);
}

}  // namespace
}  // namespace fovea::train
