#include "base/checked.h"

#include <cstdint>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(Checked, ComputesSizesThatFit) {
  EXPECT_EQ(checked_multiply<int64_t>(1 << 20, 1 << 20, "x"), int64_t{1} << 40);
  EXPECT_EQ(checked_add<uint64_t>(UINT64_MAX - 1, 1, "x"), UINT64_MAX);
  EXPECT_EQ(checked_multiply<uint64_t>(0, UINT64_MAX, "x"), 0u);
}

TEST(Checked, DividesUpWithoutOverflow) {
  EXPECT_EQ(divide_up<int64_t>(0, 3), 0);
  EXPECT_EQ(divide_up<int64_t>(6, 3), 2);
  EXPECT_EQ(divide_up<int64_t>(7, 3), 3);
  EXPECT_EQ(divide_up<int64_t>(7, INT64_MAX), 1);
  EXPECT_EQ(divide_up<int64_t>(INT64_MAX, INT64_MAX - 1), 2);
}

TEST(Checked, NamesTheOverflow) {
  expect_error(ErrorKind::BadFile,
               {"a.safetensors: tensor w: the size overflows (4294967296 x 4294967296)"}, [] {
                 checked_multiply<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32,
                                            "a.safetensors: tensor w");
               });
  expect_error(ErrorKind::InvalidArgument,
               {"--context: the size overflows (9223372036854775807 + 1)"},
               [] { checked_add<int64_t>(INT64_MAX, 1, "--context", ErrorKind::InvalidArgument); });
}

}  // namespace
}  // namespace fovea
