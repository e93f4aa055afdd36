#pragma once

#include <map>
#include <string>
#include <vector>

#include "families/registry.h"

namespace fovea {

struct TraceInput {
  Tensor ids;             // i32 [B, T]: the input of the encoder or, without one, of the decoder
  Tensor attention_mask;  // i32 [B, T]: 1 = token, 0 = padding at either end; may be unset
  Tensor token_types;     // i32 [B, T]; may be unset
  Tensor signal;          // f32, instead of ids: pixels or a spectrogram
  // i32; may be unset; labels of -100 are ignored. For a decoder-only language model: [B, T],
  // shifted internally, so that token t - 1 predicts label t. For an encoder-decoder: [B, U]; the
  // decoder reads `start` and the labels before the predicted one. Otherwise: [B, T], or [B] for a
  // head with one output per sequence.
  Tensor labels;
  int32_t start = 0, padding = 0;  // a decoder's first token, and the token that replaces -100
  bool gradients = false;
};

// Runs the model once. Returns the intermediate results, under the names of fovea/trace.h, and the
// gradients, under the checkpoint's names.
std::map<std::string, Tensor> trace_model(Transformer& model, const Family& family,
                                          const TraceInput& input);

}  // namespace fovea
