#pragma once

// The block types of GGUF files (github.com/ggml-org/ggml/blob/master/src/ggml-quants.c). Blocks
// are decoded bit for bit as ggml does. A block has a scale, in some types also a minimum, and a
// few bits for each element.

#include <span>
#include <string>
#include <string_view>

#include "kernels/layout/blocks.h"
#include "tensor/tensor.h"

namespace fovea::model {

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

// Writes the bytes of a block, the inverse of BlockReader::read(); `to` has as many bytes as the
// reader of the format. Throws InvalidArgument for formats without blocks.
void write_gguf_block(WeightFormat format, const WeightBlock& block, uint8_t* to);

// Encodes an f32 tensor in the format `block`: F32, F16, BF16, or a type of find_gguf_format(), of
// which rows must be complete blocks. Q8_0, F16 and BF16 are rounded; for all
// other types, quantize_block() searches the scales, and `importance` has the weights of the
// columns of each matrix, [matrices, width]; empty = all 1. Numbers must be finite and at most
// kMostInBlock in blocks. The bytes do not depend on the number of threads.
std::string encode_gguf(std::string_view block, const Tensor& values,
                        std::span<const float> importance = {});

}  // namespace fovea::model
