#pragma once

// From the vectors of a text's tokens to one vector of the text.

#include <string>
#include <vector>

#include "kernels/mask.h"
#include "tensor/tensor.h"

namespace fovea {

// Of tokens t = first .. last: the first one; the largest of each element; the mean; the sum over
// the root of their number; the mean with weights t + 1; the last one.
enum class TokenPooling { cls, max, mean, mean_sqrt_len, weighted_mean, last };

// As sentence-transformers spells it; BadFile names the file and the modes there are.
TokenPooling token_pooling_named(const std::string& name, const std::string& file);

// `pooled` says which tokens of each batch row count, at least one.
// hidden [B, T, C] -> f32 (f64 of f64) [B, C]; differentiable
Tensor pool_tokens(const Tensor& hidden, TokenPooling mode, const std::vector<Interval>& pooled);

// Side by side: x[i] [B, C] each -> [B, count * C]
Tensor concat_width(const std::vector<Tensor>& x);

// y = x / max(|x|, 1e-12) for each row, so that a zero stays a zero.   x [B, C] -> [B, C]
Tensor unit_length(const Tensor& x);

}  // namespace fovea
