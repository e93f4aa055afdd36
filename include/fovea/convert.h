#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

enum class FileDType { automatic, fp32, bf16, fp16 };
enum class Quantize { automatic, none, int8, int4 };

// A directory is written with full weights unless it is to be quantised: no other program reads
// fovea's quantised ones. A .gguf file is written as the model is stored unless either option says
// something else.
struct ConvertOptions {
  FileDType dtype = FileDType::automatic;  // of full tensors; automatic: as in the file
  Quantize quantize = Quantize::automatic;
  int64_t group = 32;  // weights that share a scale: 32 or 64
};

struct Conversion {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of *.safetensors or the .gguf file
  std::string weights;  // how matrices are stored now: "fp32", "int8 in groups of 32", "q8_0", ...
};

// Reads a model, a directory or a .gguf file, and writes it to another directory or .gguf file,
// with its tokenizer: in another dtype, or with the matrices of its layers and head quantised (in
// GGUF, int8 is Q8_0 and int4 Q4_0). Weights that are quantised in the source are decoded, without
// loss in fp32. InvalidArgument where `to` holds a model already, or what a directory holds
// quantised is to be quantised in another way; `warnings` as Model::open. Nothing is left under
// `to` where it fails.
Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options,
                         std::vector<std::string>* warnings = nullptr);

}  // namespace fovea
