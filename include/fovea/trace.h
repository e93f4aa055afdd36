#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct TraceOptions {
  // One of these three. `input` is a .safetensors file with input_ids [B, T] and, if wanted,
  // attention_mask, token_type_ids and labels; or pixel_values [B, channels, size, size]; or
  // input_features [B, bins, 2 * frames], or a waveform [samples] at 16 kHz.
  std::string text;
  std::vector<int32_t> ids;
  std::string input;

  bool gradients = false;  // also loss and grad.<tensor>; without labels the input is predicted
  std::string out;         // the .safetensors file to write
};

// Runs the model once and writes what it computed: logits [B, T, V], hidden.{i} [B, T, C] (0 =
// embeddings, last = after the final norm), attention.{i} [B, H, T, T], loss [1], grad.* by the
// checkpoint's own names. Returns the names written.
std::vector<std::string> trace(const Model& model, const TraceOptions& options);

}  // namespace fovea
