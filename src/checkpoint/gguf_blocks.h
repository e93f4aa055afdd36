#pragma once

// The block formats of GGUF files, bit for bit as ggml decodes and encodes them
// (github.com/ggml-org/ggml/blob/master/src/ggml-quants.c). A block has a scale, in some kinds also
// a minimum, and a few bits for each element.

#include <string_view>

#include "tensor/tensor.h"

namespace fovea {

// Returns whether blocks of this name can be decoded; false for F32, F16 and BF16, which have no
// blocks.
bool decodes_gguf(std::string_view block);

// Decodes `count` elements, which must fill complete blocks, to floats.
void decode_gguf(std::string_view block, const char* from, int64_t count, float* to);

// Encodes an f32 tensor in the format `block`: F32, F16, BF16, Q8_0 or Q4_0. For Q8_0 and Q4_0, the
// length of rows must be a multiple of 32.
std::string encode_gguf(std::string_view block, const Tensor& values);

}  // namespace fovea
