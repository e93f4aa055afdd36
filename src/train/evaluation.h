#pragma once

#include <functional>

#include "data/token_store.h"
#include "model/transformer.h"

namespace fovea {

// The mean negative log-likelihood, in nats, over `windows` windows of `context` tokens each.
// `fill` writes windows [first, first + count) as ids and targets [count, context].
using FillWindows =
    std::function<void(int64_t first, int64_t count, int32_t* ids, int32_t* targets)>;
double mean_loss(const Transformer& model, DType compute, int64_t windows, int64_t context,
                 int64_t batch, const FillWindows& fill);

// From nats a token to bits a byte of the text that the tokens stand for.
double bits_per_byte(double loss, int64_t tokens, int64_t bytes);

}  // namespace fovea
