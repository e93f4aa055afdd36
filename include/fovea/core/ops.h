#pragma once

// The ops, with their formulas; all are differentiable unless they say otherwise. All support f32,
// bf16 (computed in float) and f64 (reference kernels, for gradient checks), and throw
// InvalidArgument if shapes do not match. Inputs are on one device, where the result is created;
// indices (ids, targets, rows) are i32, and may also be on the host, where they are checked. The
// same inputs give the same bits on any number of threads. The rounding mode and the treatment of
// denormal numbers are those of the calling thread. Letters: B batch, T query tokens, S keys, H
// heads, G key-value heads, D head width, C width, V vocabulary.

#include <cstdint>

#include "fovea/core/op_options.h"
#include "fovea/core/tensor.h"

namespace fovea {

// ---- Products -----------------------------------------------------------------------------------

// y = x weight^T + bias.   x [..., C], weight [N, C], bias [N] or empty -> [..., N]
// The product is computed in x's dtype (weights are rounded to it); y has dtype `out`.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> [..., C]
// Rows with the id `padding` contribute no gradient to the table.
Tensor embedding(const Tensor& ids, const Tensor& table, int64_t padding = -1);

// Like embedding, for rows of a computed tensor instead of a parameter.
// y[...] = x[rows[...]].   rows i32 [...], x [R, C] -> [..., C]
Tensor gather(const Tensor& rows, const Tensor& x);

// ---- Norms --------------------------------------------------------------------------------------

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias   (Ba et al. 2016, eq. 4).
// x [..., C], weight and bias [C], bias may be empty -> [..., C] of dtype `out`
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float epsilon,
                  DType out);

// y = x / sqrt(mean(x^2) + epsilon) * weight   (Zhang and Sennrich 2019, eq. 4).
// x [..., C] -> [..., C] of dtype `out`
Tensor rms_norm(const Tensor& x, const Tensor& weight, float epsilon, DType out);

// y = weight * tanh(alpha * x) + bias   (DyT: Zhu et al. 2025, eq. 1), instead of a norm.
// x [..., C], alpha [1], weight and bias [C], bias may be empty -> [..., C] of dtype `out`
Tensor dynamic_tanh(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias,
                    DType out);

// ---- Attention and positions --------------------------------------------------------------------

struct AttentionOptions {
  float scale = 1;
  Mask mask;
  Dropout dropout;    // applies to the softmax's weights
  int64_t keys = -1;  // -1 = all of k
  float softcap = 0;  // scaled scores s become softcap * tanh(s / softcap); 0 = none
  // Relative position bias [H, T + S - 1] of the working type, or empty: entry s - t + T - 1 is
  // added to the score of query row t and key s. Or [N, H, T + S - 1], one table for each of N
  // equal parts of the batch.
  Tensor bias = {};
  // Terms [B, H, T, S] of the working type that are added to the scores, or empty. With terms, all
  // scores are stored.
  Tensor terms = {};
  // Scores [H] of the working type, or empty: of one more key without a value for each head, which
  // takes a share of the softmax. Not with terms.
  Tensor sinks = {};
};
// y = softmax(scale * q k^T, over the keys that the mask allows) v   (Vaswani et al. 2017, eq. 1).
// q [B, T, H, D]; k [B, capacity, G, D] and v [B, capacity, G, D'], of which the first `keys` are
// used -> [B, T, H, D']
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);

// The attention weights without dropout, for inspection; not differentiable.
// q [B, T, H, D], k [B, capacity, G, D] -> f32 (f64 for f64) [B, H, T, S]
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options);

// The inputs of the softmax of attention, for inspection: scale * q k^T, softcapped, plus the bias;
// -inf for masked keys. Not differentiable.
// q [B, T, H, D], k [B, capacity, G, D] -> f32 (f64 for f64) [B, H, T, S]
Tensor attention_scores(const Tensor& q, const Tensor& k, const AttentionOptions& options);

// The last step of attention with given weights: y[b, t, h] = sum over s of weights[b, h, t, s] *
// v[b, s, g], where g is the key-value head of h.   weights [B, H, T, S], v [B, S, G, D'] -> [B, T,
// H, D'] of v's dtype
Tensor weighted_values(const Tensor& weights, const Tensor& v);

// Rotary positions (Su et al. 2021, eq. 34): rotates pairs of the first R of D elements by an
// angle, (a, b) -> (a cos - b sin, b cos + a sin); copies elements from R on. Pairing: halves (i, i
// + R/2), as in most models of Hugging Face; neighbours (2i, 2i + 1), as in the paper.
// x [B, T, H, D]; cosines, sines f32 [T, R/2] for all batch rows, or [B*T, R/2] -> [B, T, H, D]
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing);

// Concatenates along the last axis: for each head, the vector that all heads share before its own.
// shared [B, T, 1, N], own [B, T, H, D] -> [B, T, H, N + D]
Tensor concat_shared(const Tensor& shared, const Tensor& own);

// ---- Functions of each element ------------------------------------------------------------------

// y = f(x), elementwise: relu, gelu (exact), gelu_tanh (GPT-2's), silu, tanh, quick_gelu (CLIP's),
// relu_squared, sigmoid.
Tensor activation(const Tensor& x, Activation kind);

// y = f(x) * factor, elementwise: the hidden layer of a GLU (Shazeer 2020).
Tensor gated_activation(const Tensor& x, const Tensor& factor, Activation kind);

// y = a + b, elementwise, of a's dtype.
Tensor add(const Tensor& a, const Tensor& b);

// y = a - b, elementwise, of a's dtype.
Tensor subtract(const Tensor& a, const Tensor& b);

// y = a * b, elementwise.
Tensor multiply(const Tensor& a, const Tensor& b);

// y = the smaller of a and b, elementwise, of a's dtype; NaN if one of them is NaN. Where they are
// equal, each receives half of the gradient.   a, b [...] -> [...]
Tensor minimum(const Tensor& a, const Tensor& b);

// y = min(max(x, least), most), elementwise; no gradient outside the limits.   x [...] -> [...]
Tensor clip(const Tensor& x, float least, float most);

// y = factor * x, and y = x + offset (such as a norm's gain of 1 + w), elementwise.
Tensor scale(const Tensor& x, float factor);
Tensor shift(const Tensor& x, float offset);

// y = cap * tanh(x / cap), elementwise: bounded by cap, close to x for small x.
Tensor softcap(const Tensor& x, float cap);

// y = x * factors + bias, column by column.   x [..., C], factors [C], bias [C] or empty -> [...,
// C]
Tensor scale_columns(const Tensor& x, const Tensor& factors, const Tensor& bias = {});

// y = exp(x), log(x) and log sigmoid(x) = -log(1 + exp(-x)), elementwise, as f32 (f64 for f64).
// x [...] -> [...]
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);

// Inverted dropout (Srivastava et al. 2014); probability 0 is the identity.
Tensor dropout(const Tensor& x, const Dropout& options);

// y = x in `dtype`; returns x itself if it has that dtype.
Tensor cast(const Tensor& x, DType dtype);

// ---- Sums over elements -------------------------------------------------------------------------

// The sum and the mean of all elements, as f32 (f64 for f64).   x [...] -> [1]
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

// y = softmax over the last axis, as f32 (f64 for f64).   x [..., C] -> [..., C]
Tensor softmax(const Tensor& x);

// y = x / (sum over the last axis + 1e-20), for x of at least 0.   x [..., C] -> [..., C]
Tensor divide_by_sum(const Tensor& x);

// ---- Losses -------------------------------------------------------------------------------------

// sum over rows of -log softmax(logits[r])[targets[r]] / divisor; targets < 0 are ignored.
// logits [..., V], targets i32 [...] -> f64 [1]. Divisor 0 = the number of targets that are not
// ignored: the mean. With smoothing (Szegedy et al. 2016, section 7) the target has 1 - smoothing
// of the weight, and all V classes share the rest.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor = 0,
                     float smoothing = 0);

// Returns cross_entropy(linear(x, weight, bias), targets), with the same bits, but never stores all
// logits.   x [..., C], weight [V, C], bias [V] or empty, targets i32 [...] -> f64 [1]
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets);

// y[r] = log softmax(logits[r])[targets[r]]; 0 where targets[r] < 0.
// logits [..., V], targets i32 [...] -> f32 (f64 for f64) [...]
Tensor log_probability(const Tensor& logits, const Tensor& targets);

// Returns log_probability(linear(x, weight, bias), targets), with the same bits, but never stores
// all logits.   x [..., C], weight [V, C], bias [V] or empty, targets i32 [...] -> f32 (f64 for
// f64)
// [...]
Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& targets);

// ---- Sequences and images -----------------------------------------------------------------------

// Concatenates along the tokens, first before second, in second's dtype.
// first [B, N, C] or [1, N, C] (the same for every batch row), second [B, T, C] -> [B, N + T, C]
Tensor concat_tokens(const Tensor& first, const Tensor& second);

// Windows of a sequence, so that a convolution is a linear layer: element (c, j) of a window is at
// c * kernel + j, in the order of a weight [out, C, kernel]; zeros outside x.
// x [B, T, C] -> [B, (T + 2 * padding - kernel) / stride + 1, C * kernel]
Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding);

// The squares of an image, row by row, each in the order of a weight [out, channels, size, size].
// Not differentiable: images are inputs.
// image [B, channels, height, width] -> [B, squares, channels * size * size]
Tensor patches(const Tensor& image, int64_t size);

// ---- Choices ------------------------------------------------------------------------------------

// y[r, j] = x[r, columns[r, j]].   x [R, C], columns i32 [R, k] -> [R, k]
Tensor pick(const Tensor& x, const Tensor& columns);

}  // namespace fovea
