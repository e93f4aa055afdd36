#pragma once

// Every differentiable op of fovea, with its formula. Each lives in the file of its name: forward,
// and its backward right under it. All take f32, bf16 (working in float) or f64 (on the reference
// kernels, for gradient checks) and check shapes. Letters: B batch, T query tokens, S keys, H
// heads, G key-value heads, D head width, C width, V vocabulary.

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace fovea {

// y = x weight^T + bias.   x [..., C], weight [N, C], bias [N] or absent -> [..., N]
// The product is taken in x's dtype (weights are rounded to it); y has `out`.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> [..., C]
Tensor embedding(const Tensor& ids, const Tensor& table);

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias   (Ba et al. 2016, eq. 4).
// x [..., C] -> [..., C] of dtype `out`
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float epsilon,
                  DType out);

// y = x / sqrt(mean(x^2) + epsilon) * weight   (Zhang and Sennrich 2019, eq. 4).
// x [..., C] -> [..., C] of dtype `out`
Tensor rms_norm(const Tensor& x, const Tensor& weight, float epsilon, DType out);

// y = softmax(scale * q k^T, over the keys that the mask shows) v   (Vaswani et al. 2017, eq. 1).
// q [B, T, H, D]; k, v [B, capacity, G, D], of which the first `keys` count -> [B, T, H, D]
struct AttentionOptions {
  float scale = 1;
  Mask mask;
  Dropout dropout;    // of the softmax's weights
  int64_t keys = -1;  // -1 = all of k
  float softcap = 0;
  Tensor bias;
};
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);
// The weights alone, for inspection; not differentiable. -> f32 [B, H, T, S]
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options);

// y = f(x), elementwise: relu, gelu (exact), gelu_tanh (GPT-2's), silu.
Tensor activation(const Tensor& x, Activation kind);

// y = a + b, of a's dtype: a is the residual stream.
Tensor add(const Tensor& a, const Tensor& b);

// y = x in another dtype; the same tensor where it has that dtype.
Tensor cast(const Tensor& x, DType dtype);

// y = a * b, elementwise.
Tensor multiply(const Tensor& a, const Tensor& b);

// Inverted dropout (Srivastava et al. 2014); probability 0 is the identity.
Tensor dropout(const Tensor& x, const Dropout& options);

// sum over rows of -log softmax(logits[r])[targets[r]] / divisor; targets < 0 are ignored.
// logits [..., V], targets i32 [...] -> [1]. Divisor 0 = the number of targets that count: the
// mean.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor = 0);

enum class Pairing : uint8_t { halves, neighbours };
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing);
Tensor scale(const Tensor& x, float factor);
Tensor shift(const Tensor& x, float offset);
Tensor softcap(const Tensor& x, float cap);
struct Routing {
  Tensor weights, experts;
};
Routing route(const Tensor& logits, int64_t k, bool normalise);
struct Groups {
  Tensor rows, places;
  std::vector<int64_t> counts;
};
Groups group_by_expert(const Tensor& experts, int64_t expert_count);
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts, const std::vector<Tensor>& weights, const std::vector<Tensor>& biases);
Tensor combine(const Tensor& z, const Tensor& places, const Tensor& weights);
Tensor balance_loss(const Tensor& logits, const Tensor& experts, const Tensor& valid = {});
Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding);
Tensor patches(const Tensor& image, int64_t size);
Tensor concat_tokens(const Tensor& first, const Tensor& second);

}  // namespace fovea
