#pragma once

// Comparisons of one query with the rows of a matrix in host memory, such as that of a mapped file.
// They are not in the table of a device, since the rows may exceed any memory.

#include <cstdint>

namespace fovea {

// Each function writes one number for each of `rows` consecutive rows of `width` elements. The bits
// of a number depend on nothing but its row and the query.
struct ScanKernels {
  // The dot product, and the squared distance, in 32 partial sums (cpu/simd-inl.h).
  void (*dots)(float* y, const float* x, int64_t rows, int64_t width, const float* query);
  void (*squared_distances)(float* y, const float* x, int64_t rows, int64_t width,
                            const float* query);
  // The exact sum of (x - 128) * query. Elements of x are 1 to 255, and of the query -127 to 127;
  // `width` is a multiple of 64 and at most kMostScannedBytes.
  void (*byte_dots)(int32_t* y, const uint8_t* x, int64_t rows, int64_t width, const int8_t* query);
  // The number of bits that differ; `width` is a multiple of 8.
  void (*bit_distances)(int32_t* y, const uint8_t* x, int64_t rows, int64_t width,
                        const uint8_t* query);
};
constexpr int64_t kMostScannedBytes = 1 << 16;  // 127 * 127 * 2^16 < 2^31

const ScanKernels& reference_scan_kernels();
// Those of the instruction set in use (isa.h).
const ScanKernels& scan_kernels();

}  // namespace fovea
