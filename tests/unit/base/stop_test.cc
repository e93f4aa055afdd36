// Work that ends when nobody waits for its result.

#include "base/stop.h"

#include <gtest/gtest.h>

#include <thread>

namespace fovea {
namespace {

bool stops() {
  std::this_thread::sleep_for(std::chrono::milliseconds(6));  // it asks at most every 5 ms
  try {
    stop_if_requested();
  } catch (const Stopped&) {
    return true;
  }
  return false;
}

TEST(Stop, IsAskedOfEachScopeOfTheThread) {
  EXPECT_FALSE(stops());
  bool outer_asks = false, inner_asks = false;
  const StopScope outer([&] { return outer_asks; });
  {
    const StopScope inner([&] { return inner_asks; });
    EXPECT_FALSE(stops());
    inner_asks = true;
    EXPECT_TRUE(stops());
    inner_asks = false;
    outer_asks = true;
    EXPECT_TRUE(stops());
    bool other = true;
    std::thread([&] { other = stops(); }).join();  // a thread without a scope
    EXPECT_FALSE(other);
  }
  outer_asks = false;
  inner_asks = true;
  EXPECT_FALSE(stops());
}

TEST(Stop, IsNotAskedInEachIterationOfALoop) {
  int asked = 0;
  const StopScope scope([&] { return ++asked > 1'000'000; });
  for (int i = 0; i < 1000; ++i) stop_if_requested();
  EXPECT_LT(asked, 100);
}

}  // namespace
}  // namespace fovea
