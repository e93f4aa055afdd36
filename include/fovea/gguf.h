#pragma once

#include <string>

#include "fovea/model.h"

namespace fovea {

// How the matrices of a .gguf file are stored. q8_0 and q4_0: blocks of 32 elements that share a
// scale, 8.5 and 4.5 bits an element. Vectors are f32 in all of them.
enum class GgufDtype { f32, f16, bf16, q8_0, q4_0 };

// Writes a model and its tokenizer as one file, for llama.cpp and for Model::open(). The file
// appears whole or not at all. Unsupported where no architecture that llama.cpp knows is like the
// model.
void save_gguf(const Model& model, const std::string& path, GgufDtype dtype = GgufDtype::f16);

}  // namespace fovea
