#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct TraceOptions {
  // The input; set one of `text`, `ids` and `input`. `input` is a .safetensors file with input_ids
  // [B, T] and optionally attention_mask, token_type_ids and labels; or with pixel_values [B,
  // channels, size, size], input_features [B, bins, 2 * frames], or a waveform [samples] at 16 kHz.
  std::string text;
  std::vector<int32_t> ids;
  std::string input;

  // Also write the loss and grad.<tensor>. Without labels, the targets are the input ids.
  bool gradients = false;
  std::string out;  // path of the .safetensors file to write
};
void visit(TraceOptions& options, OptionVisitor& visitor);  // fovea/options.h

// Runs the model once and writes its intermediate results: logits [B, T, V], hidden.{i} [B, T, C]
// (0 = embeddings; last = after the final norm, or before it in families for which transformers
// reports that state), attention.{i} [B, H, T, T], loss [1] with labels or gradients, and grad.*
// under the checkpoint's tensor names. In an encoder-decoder, the names of hidden and attention
// begin with "encoder_" or "decoder_"; cross_attention.{i} is [B, H, T, S].
// Returns the names of the written tensors.
std::vector<std::string> trace(const Model& model, const TraceOptions& options);

}  // namespace fovea
