#pragma once

#include <string>

#include "fovea/model.h"

namespace fovea {

// Storage format of the matrices in a .gguf file. q8_0 and q4_0: blocks of 32 elements that share a
// scale, 8.5 and 4.5 bits per element. Vectors are always f32.
enum class GgufDtype { f32, f16, bf16, q8_0, q4_0 };

// Writes a model and its tokenizer as one file, readable by llama.cpp and Model::open(). The file
// is written atomically. Throws Unsupported if llama.cpp has no architecture for the model, and
// Failed if the file cannot be written.
void save_gguf(const Model& model, const std::string& path, GgufDtype dtype = GgufDtype::f16);

}  // namespace fovea
