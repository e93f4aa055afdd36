#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/number_order.h"
#include "families/registry.h"
#include "fovea/study/trace.h"

namespace fovea::study {

using TraceTensors = std::map<std::string, Tensor, NumberOrder>;

struct TraceInput {
  Tensor ids;             // i32 [B, T]: the input of the encoder or, without one, of the decoder
  Tensor attention_mask;  // i32 [B, T]: 1 = token, 0 = padding at either end; may be unset
  Tensor token_types;     // i32 [B, T]; may be unset
  Tensor signal;          // f32, instead of ids: pixels or a spectrogram
  Tensor vectors, vector_rows;  // as in Sequence
  // i32; may be unset; labels of -100 are ignored. For a decoder-only language model: [B, T],
  // shifted internally, so that token t - 1 predicts label t. For an encoder-decoder: [B, U]; the
  // decoder reads `start` and the labels before the predicted one. Otherwise: [B, T], or [B] for a
  // head with one output per sequence.
  Tensor labels;
  int32_t start = 0, padding = 0;       // a decoder's first token, and the token that replaces -100
  bool starts_with_last_label = false;  // see Family
  bool gradients = false;
  // As in TraceOptions.
  std::vector<std::string> what;
  std::string layers;
  TraceTensors patches;    // by name; each replaces the value of its point
  std::string patch_file;  // the file of the patches, for errors
  TraceHook hook;          // for selected values; may be empty
};

// Runs the model once. Returns the intermediate results, under the names of fovea/study/trace.h,
// the ids, and the gradients, under the checkpoint's names.
TraceTensors trace_model(model::Transformer& model, const model::Family& family,
                         const TraceInput& input);

}  // namespace fovea::study
