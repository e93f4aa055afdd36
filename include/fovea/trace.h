#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct TraceOptions {
  std::string text;  // one of text, ids, input
  std::vector<int32_t> ids;
  std::string
      input;  // a .safetensors file with input_ids [B, T] and, if wanted, attention_mask and labels
  bool gradients = false;  // also loss and grad.<tensor>; needs labels, or takes the input itself
  std::string out;         // the .safetensors file to write
};

// Runs the model once and writes what it computed: logits [B, T, V], hidden.{i} [B, T, C] (0 =
// embeddings, last = after the final norm), attention.{i} [B, H, T, T], loss [1], grad.* by the
// checkpoint's own names. Returns the names written.
std::vector<std::string> trace(const Model& model, const TraceOptions& options);

}  // namespace fovea
