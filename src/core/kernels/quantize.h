#pragma once

#include <cstdint>

namespace fovea::cpu {

// Rounds `groups` consecutive groups of `size` numbers, a multiple of 32, to integers; gives the
// bits of quantize_group() (kernels/packed.h) if all numbers are finite. `numbers` [groups][size]
// receives the integers plus `offset`, and scales[g * stride] the scale of group g as f16.
void quantize_to_bytes(const float* x, int64_t groups, int64_t size, uint8_t* numbers,
                       uint16_t* scales, int64_t stride);  // int8, offset 128
void quantize_to_nibbles(const float* x, int64_t groups, int64_t size, uint8_t* numbers,
                         uint16_t* scales, int64_t stride);  // int4, offset 8

}  // namespace fovea::cpu
