#pragma once

// The types of GGUF files, and the type of each tensor in a file of mixed types: the choice of
// llama-quantize (github.com/ggml-org/llama.cpp/blob/master/src/llama-quant.cpp).

#include <string>
#include <string_view>

#include "fovea/model/gguf.h"
#include "fovea/model/spec.h"

namespace fovea::model {

struct GgufFileType {
  FileDType dtype;
  const char* name;   // "q4_k_m"
  uint32_t number;    // general.file_type
  const char* block;  // of most matrices: "Q4_K"
};
const GgufFileType& gguf_file_type(FileDType dtype);  // not automatic

// Return the type with this number, or the first one that writes most matrices as `block`; null if
// no type does.
const GgufFileType* find_gguf_file_type(int64_t number);
const GgufFileType* find_gguf_file_type(std::string_view block);

inline bool is_quantized(FileDType dtype) { return dtype >= FileDType::q8_0; }

struct GgufMix {
  const GgufFileType& type;
  const Spec& spec;  // of a decoder
  bool llama;        // whether the architecture is llama
  bool importance;   // whether an importance matrix is given
};
// Returns the block type of a matrix, before fallback_block().
std::string block_in_mix(const GgufMix& mix, std::string_view tensor);

// Returns `block`, or the type that llama-quantize uses instead if rows of this width do not
// consist of its blocks.
std::string fallback_block(const std::string& block, int64_t width);

}  // namespace fovea::model
