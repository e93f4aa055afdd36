#pragma once

#include <map>
#include <string>
#include <vector>

#include "families/registry.h"

namespace fovea {

struct TraceInput {
  Tensor ids;             // i32 [B, T]
  Tensor attention_mask;  // i32 [B, T], 1 = a token, 0 = padding at either end; or absent
  Tensor labels;  // i32 [B, T], or absent; -100 is ignored; shifted inside: row t is predicted from
                  // t - 1
  bool gradients = false;
};

// Runs the model once and returns what it computed, by the names of trace.h (public), gradients by
// the checkpoint's own.
std::map<std::string, Tensor> trace_model(Transformer& model, const Family& family,
                                          const TraceInput& input);

}  // namespace fovea
