#pragma once

// How an embedder turns the vectors of tokens into one vector, between directories of
// sentence-transformers and GGUF files. llama.cpp scales every vector to unit length.

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::model {

// llama.cpp's numbers of poolings. rank: the head for labels of texts takes the place of a pooling.
enum class GgufPooling : uint32_t { none, mean, first, last, rank };
// The key, after the name of the architecture.
constexpr const char* kGgufPoolingType = ".pooling_type";

struct TextVectorModules {
  GgufPooling pooling = GgufPooling::none;
  std::vector<Tensor> dense;  // multiplied with the pooled vector in order: f32 [out, in]
  bool unit_length = true;    // false: a directory whose vectors keep their lengths
};

// Reads the modules of a directory; without modules.json, there is no pooling. Throws Unsupported,
// naming the folder, if a GGUF file cannot hold a module.
TextVectorModules modules_of_directory(const std::string& folder);

// Reads the modules of a .gguf file. Throws BadFile, naming the key or the tensor, if the number of
// the pooling is not known or a matrix does not fit.
TextVectorModules modules_of_gguf(const std::string& path);

// Reads the modules of a directory or of a .gguf file.
TextVectorModules modules_at(const std::string& path);

// Throws Unsupported unless llama.cpp multiplies the vectors of this architecture, of this width,
// with the matrices.
void check_dense(const TextVectorModules& modules, const std::string& architecture, int64_t width);

// Writes the files of a sentence-transformers directory, except the model and the tokenizer of its
// Transformer, whose width is `width`; nothing if there is no pooling of tokens.
void write_modules(const std::string& folder, const TextVectorModules& modules, int64_t width);

}  // namespace fovea::model
