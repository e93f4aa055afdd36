#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

enum class FileDType { automatic, fp32, bf16, fp16 };
enum class Quantize { none, int8, int4 };

struct ConvertOptions {
  FileDType dtype = FileDType::automatic;  // of full tensors; automatic: as in the file
  Quantize quantize = Quantize::none;
  int64_t group = 32;  // weights that share a scale: 32 or 64
};

struct Conversion {
  int64_t parameters = 0;
  int64_t bytes_before = 0, bytes_after = 0;  // of all *.safetensors
};

// Reads the model in one directory and writes it to another, with its tokenizer: in another dtype,
// or with the matrices of its layers and head quantised. InvalidArgument where `to` holds a model
// already, or what is quantised is to be quantised again; `warnings` as Model::open.
Conversion convert_model(const std::string& from, const std::string& to,
                         const ConvertOptions& options,
                         std::vector<std::string>* warnings = nullptr);

}  // namespace fovea
