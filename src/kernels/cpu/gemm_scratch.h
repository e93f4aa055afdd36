#pragma once

#include <cstddef>

namespace fovea::cpu {

// What one thread's share of a product needs besides its operands.
enum class GemmScratch { packed_a, packed_b, carry, bias, scales, corrections, count };

// A buffer of this thread, aligned to cache lines. It lives as long as the thread and only grows,
// so a steady training loop allocates nothing. Its contents are undefined.
float* gemm_scratch(GemmScratch use, size_t floats);

}  // namespace fovea::cpu
