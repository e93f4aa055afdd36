#pragma once

#include <map>
#include <string>
#include <vector>

#include "families/registry.h"

namespace fovea {

struct TraceInput {
  Tensor ids;             // i32 [B, T]: the model's input; the encoder's, if there is one
  Tensor attention_mask;  // i32 [B, T], 1 = a token, 0 = padding at either end; may be unset
  Tensor token_types;     // i32 [B, T]; may be unset
  Tensor signal;          // f32, instead of ids: pixels or a spectrogram
  // i32; may be unset; -100 is ignored. For a decoder [B, T], shifted internally: row t is
  // predicted from t - 1. With an encoder [B, U], and the decoder reads them after `start`. For
  // other heads in the shape of their outputs: [B, T], [B].
  Tensor labels;
  int32_t start = 0, padding = 0;  // a decoder's first token, and the token that replaces -100
  bool gradients = false;
};

// Runs the model once and returns the intermediate values, by the names of trace.h (public), and
// gradients by the checkpoint's names.
std::map<std::string, Tensor> trace_model(Transformer& model, const Family& family,
                                          const TraceInput& input);

}  // namespace fovea
