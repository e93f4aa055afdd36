#pragma once

#include <map>
#include <string>
#include <vector>

#include "families/registry.h"

namespace fovea {

struct TraceInput {
  Tensor ids;             // i32 [B, T]: what the model reads; an encoder, if there is one
  Tensor attention_mask;  // i32 [B, T], 1 = a token, 0 = padding at either end; or absent
  Tensor token_types;     // i32 [B, T], or absent
  Tensor signal;          // f32, instead of ids: pixels or a spectrogram
  // i32, or absent; -100 is ignored. Of a decoder [B, T], shifted inside: row t is predicted from
  // t - 1. Behind an encoder [B, U], and the decoder reads them after `start`. Of other heads what
  // they give: [B, T], [B].
  Tensor labels;
  int32_t start = 0, padding = 0;  // a decoder's first token, and what stands for -100
  bool gradients = false;
};

// Runs the model once and returns what it computed, by the names of trace.h (public), gradients by
// the checkpoint's own.
std::map<std::string, Tensor> trace_model(Transformer& model, const Family& family,
                                          const TraceInput& input);

}  // namespace fovea
