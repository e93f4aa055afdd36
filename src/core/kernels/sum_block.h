#pragma once

#include <cstdint>

namespace fovea {

// sum_of_squares() of the CPU is the sum, in order, of those of blocks of this many elements.
inline constexpr int64_t kSumBlock = 4096;

}  // namespace fovea
