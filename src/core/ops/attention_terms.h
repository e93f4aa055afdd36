#pragma once

// Attention whose scores have terms for each query and key.

#include "ops/ops.h"

namespace fovea {

// The inputs of the softmax; those of hidden keys are `hidden`.   -> [B, H, T, S]
Tensor scores_with_terms(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                         double hidden);
// The softmax of the scores, without dropout.   -> [B, H, T, S]
Tensor weights_with_terms(const Tensor& q, const Tensor& k, const AttentionOptions& options);
// attention() with options.terms.
Tensor attention_with_terms(const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& options);

}  // namespace fovea
