#pragma once

// The blocks in which GGUF files store elements, bit for bit as ggml decodes and encodes them
// (github.com/ggml-org/ggml/blob/master/src/ggml-quants.c). A block is a scale, in some kinds a
// minimum too, and a few bits for each element.

#include <string_view>

#include "tensor/tensor.h"

namespace fovea {

// Whether blocks of this name are decoded; F32, F16 and BF16 are no blocks and need it not.
bool decodes_gguf(std::string_view block);

// count elements, a whole number of blocks, to floats.
void decode_gguf(std::string_view block, const char* from, int64_t count, float* to);

// An f32 tensor as F32, F16, BF16, Q8_0 or Q4_0; the rows of the last two are multiples of 32.
std::string encode_gguf(std::string_view block, const Tensor& values);

}  // namespace fovea
