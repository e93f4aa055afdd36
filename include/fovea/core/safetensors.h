#pragma once

// Files of named tensors in the safetensors format (github.com/huggingface/safetensors), which
// PyTorch, JAX and MLX also read and write.

#include <filesystem>
#include <map>
#include <string>

#include "fovea/core/tensor.h"

namespace fovea {

// Returns the tensors of a file. They are read-only: they share the file's mapping, if their
// elements are aligned. Throws BadFile, naming the file and the tensor or position, if the file
// cannot be read or is invalid, Unsupported if a tensor has a type that DType lacks.
std::map<std::string, Tensor> read_safetensors(const std::filesystem::path& path);

// Equal tensors give equal bytes. Replaces the file at once, so that its own mapped tensors may be
// written to it. Throws Failed if the file cannot be written.
void write_safetensors(const std::filesystem::path& path,
                       const std::map<std::string, Tensor>& tensors);

}  // namespace fovea
