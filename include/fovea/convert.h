#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model.h"
#include "fovea/options.h"

namespace fovea {

enum class FileDType { automatic, fp32, bf16, fp16 };
enum class Quantize { automatic, none, int8, int4 };

// With `quantize` = automatic, a directory gets unquantised weights, since no other program reads
// quantised weights in fovea's format. A .gguf file keeps the precision of the source if both
// options are automatic.
struct ConvertOptions {
  // Dtype of unquantised tensors; automatic: as in the source file.
  FileDType dtype = FileDType::automatic;
  Quantize quantize = Quantize::automatic;
  // Number of weights that share a scale: 32 or, in a directory, 64; 0 = a whole row (int8).
  int64_t group = 32;
  // Converts an adapter itself, instead of merging it into the weights of its base: to a .gguf file
  // for llama.cpp, or to a directory of PEFT in fp32.
  bool adapter_only = false;
};
void visit(ConvertOptions& options, OptionVisitor& visitor);  // fovea/options.h

struct Conversion {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of *.safetensors or of the .gguf files
  // Precision of the written matrices: "fp32", "int8 in groups of 32", "q8_0", ...
  std::string weights;
  std::vector<std::string> warnings = {};  // of the source; see Model::warnings()
};

// Converts a model with its tokenizer. `from` and `to` are each a directory or a .gguf file.
// Changes the dtype, or quantises the matrices of the layers and the head (in GGUF, int8 is Q8_0
// and int4 is Q4_0). Quantised source weights are dequantised first; in fp32 this is lossless.
// Throws InvalidArgument if `to` already is or contains a model, or if a quantised directory would
// be quantised in a different format, the errors of Model::open() for `from`, and Failed if `to`
// cannot be written. After a failure, `to` contains nothing new.
// The weighted sum of `adapters`, and the adapter of a `from` that holds one, are merged into the
// weights. With options.adapter_only there must be one adapter, of weight 1; throws Unsupported if
// the format cannot express it.
Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options,
                         const std::vector<AdapterUse>& adapters = {});

}  // namespace fovea
