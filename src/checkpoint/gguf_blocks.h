#pragma once

// The block types of GGUF files, bit for bit as ggml decodes and encodes them
// (github.com/ggml-org/ggml/blob/master/src/ggml-quants.c). A block has a scale, in some types also
// a minimum, and a few bits for each element.

#include <string>
#include <string_view>

#include "kernels/blocks.h"
#include "tensor/tensor.h"

namespace fovea {

// A block type that can be decoded, the format of its packed weights, and how its blocks are read.
struct GgufFormat {
  std::string_view name;
  WeightFormat format;
  BlockReader reader;
};
// Returns null for types that cannot be decoded, and for F32, F16 and BF16, which have no blocks.
const GgufFormat* find_gguf_format(std::string_view block);
std::string gguf_format_names();  // the types that can be decoded, "Q4_0, Q4_1 ... or Q6_K"

inline bool decodes_gguf(std::string_view block) { return find_gguf_format(block) != nullptr; }

// Decodes `count` elements, which must fill complete blocks, to floats.
void decode_gguf(std::string_view block, const char* from, int64_t count, float* to);

// Encodes an f32 tensor in the format `block`: F32, F16, BF16, Q8_0 or Q4_0. For Q8_0 and Q4_0, the
// length of rows must be a multiple of 32.
std::string encode_gguf(std::string_view block, const Tensor& values);

}  // namespace fovea
