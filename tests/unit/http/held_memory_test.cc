#include "http/held_memory.h"

#include <gtest/gtest.h>

#include <optional>

namespace fovea::http {
namespace {

TEST(HeldMemory, HasALimitForAllShares) {
  HeldMemory memory(100);
  HeldMemory::Share first(memory);
  std::optional<HeldMemory::Share> second(std::in_place, memory);
  EXPECT_TRUE(first.set(60));
  EXPECT_FALSE(second->set(41));
  EXPECT_EQ(memory.held(), 60);
  EXPECT_TRUE(second->set(40));
  EXPECT_FALSE(first.add(1));
  EXPECT_TRUE(first.set(59)) << "less is always possible";
  EXPECT_TRUE(first.set(65, 70)) << "as is a small size";
  EXPECT_EQ(memory.held(), 105);
  second.reset();
  EXPECT_EQ(memory.held(), 65);
  EXPECT_TRUE(first.set(100));
  EXPECT_EQ(memory.take_peak(), 105);
  EXPECT_EQ(memory.take_peak(), 100);
}

}  // namespace
}  // namespace fovea::http
