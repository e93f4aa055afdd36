#pragma once

#include <string>

#include "fovea/model/model.h"

namespace fovea::model {

// Types of the matrices in a file; directories have only the first four. The names of quantised
// types are those of llama-quantize, and so is the choice of a type for each tensor: the head, and
// in types that end in _s, _m or _l also values and down-projections, may have more bits than most
// matrices. Vectors are always fp32.
enum class FileDType {
  automatic,  // as in the source
  fp32,
  bf16,
  fp16,
  q8_0,
  q6_k,
  q5_k_m,
  q5_k_s,
  q5_1,
  q5_0,
  q4_k_m,
  q4_k_s,
  q4_1,
  q4_0,
  iq4_nl,
  iq4_xs,
  q3_k_l,
  q3_k_m,
  q3_k_s,
  q2_k,
  q2_k_s,
  mxfp4_moe  // the experts; all other matrices are Q8_0
};

// Writes a model and its tokenizer as one file, readable by llama.cpp and Model::open(). The file
// is written atomically. Throws Unsupported if llama.cpp has no architecture for the model,
// BadFile if weights to be quantised are not finite, InvalidArgument if they are too large for the
// type, and Failed if the file cannot be written.
void save_gguf(const Model& model, const std::string& path, FileDType dtype = FileDType::fp16);

}  // namespace fovea::model
