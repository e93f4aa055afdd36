#pragma once

#include <cstddef>

namespace fovea::cpu {

// What one thread's share of a product needs beside its operands.
enum class GemmScratch { packed_a, packed_b, carry, bias, scales, corrections, count };

// A buffer of this thread, aligned to cache lines, that lives as long as the thread and only ever
// grows: the steady state of training allocates nothing. What it holds is undefined.
float* gemm_scratch(GemmScratch use, size_t floats);

}  // namespace fovea::cpu
