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
// Rows of the id `padding` give the table no gradient.
Tensor embedding(const Tensor& ids, const Tensor& table, int64_t padding = -1);

// The same for rows of what a pass computes rather than of a parameter.
// y[...] = x[rows[...]].   rows i32 [...], x [R, C] -> [..., C]
Tensor gather(const Tensor& rows, const Tensor& x);

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias   (Ba et al. 2016, eq. 4); where
// epsilon is outside: (x - mean) / (sqrt(variance) + epsilon) * weight + bias.
// x [..., C] -> [..., C] of dtype `out`
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, NormEpsilon epsilon,
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
  float softcap = 0;  // scaled scores s become softcap * tanh(s / softcap); 0 = none
  // [H, T + S - 1] of the working type, or absent: what is then added to the score of query row t
  // and key s is entry s - t + T - 1, a bias by distance. Or [N, H, T + S - 1], a table for each of
  // N equal parts of the batch.
  Tensor bias = {};
};
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);
// The same for the sequences of a ragged batch, their keys and values in pages: what decoding
// needs. q [..., H, D], of which each span has its rows -> the same; not differentiable.
struct PagedOptions {
  int64_t kv_heads = 0;
  DType pages = DType::f32;
  float scale = 1, softcap = 0;
  // [H, N] of the working type, or absent: what is then added to the score of a query at position p
  // and key s is entry s - p + bias_zero.
  Tensor bias = {};
  int64_t bias_zero = 0;
};
Tensor attention_paged(const Tensor& q, const std::vector<PagedText>& spans,
                       const PagedOptions& options);
// The weights alone, for inspection; not differentiable. -> f32 [B, H, T, S]
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options);

// Rotary positions (Su et al. 2021, eq. 34): pairs of the first R of D elements turned by an angle,
// (a, b) -> (a cos - b sin, b cos + a sin); elements from R on are copied. Pairing: halves (i,
// i + R/2), as Hugging Face stores; neighbours (2i, 2i + 1), as the paper.
// x [B, T, H, D]; cosines, sines f32 [T, R/2] for all batch rows, or [B*T, R/2] -> [B, T, H, D]
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing);

// y = f(x), elementwise: relu, gelu (exact), gelu_tanh (GPT-2's), silu, tanh, quick_gelu (CLIP's),
// relu_squared, sigmoid.
Tensor activation(const Tensor& x, Activation kind);

// y = f(x) * factor, elementwise: the hidden layer of a GLU (Shazeer 2020).
Tensor gated_activation(const Tensor& x, const Tensor& factor, Activation kind);

// y = a + b, of a's dtype: a is the residual stream.
Tensor add(const Tensor& a, const Tensor& b);

// y = a - b, elementwise, of a's dtype.
Tensor subtract(const Tensor& a, const Tensor& b);

// The sum and the mean of all elements, as f32 (f64 of f64).   x [...] -> [1]
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

// y = log sigmoid(x) = -log(1 + exp(-x)), elementwise, as f32 (f64 of f64).   x [...] -> [...]
Tensor log_sigmoid(const Tensor& x);

// y = factor * x, and y = x + offset (a norm's gain of 1 + w), elementwise.
Tensor scale(const Tensor& x, float factor);
Tensor shift(const Tensor& x, float offset);

// y = cap * tanh(x / cap), elementwise: below cap in size, x itself where it is small.
Tensor softcap(const Tensor& x, float cap);

// y = softmax over the last axis, as f32 (f64 of f64).   x [..., C] -> [..., C]
Tensor softmax(const Tensor& x);

// y = x in another dtype; the same tensor where it has that dtype.
Tensor cast(const Tensor& x, DType dtype);

// y = a * b, elementwise.
Tensor multiply(const Tensor& a, const Tensor& b);

// Inverted dropout (Srivastava et al. 2014); probability 0 is the identity.
Tensor dropout(const Tensor& x, const Dropout& options);

// sum over rows of -log softmax(logits[r])[targets[r]] / divisor; targets < 0 are ignored.
// logits [..., V], targets i32 [...] -> f64 [1]. Divisor 0 = the number of targets that count: the
// mean. With smoothing (Szegedy et al. 2016, eq. 6) the target has 1 - smoothing of the weight and
// all V classes share the rest.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor = 0,
                     float smoothing = 0);

// y[r] = log softmax(logits[r])[targets[r]]; 0 where targets[r] < 0.
// logits [..., V], targets i32 [...] -> f32 (f64 of f64) [...]
Tensor log_probability(const Tensor& logits, const Tensor& targets);

// first in front of second along the tokens, of second's dtype.
// first [B, N, C] or [1, N, C] (the same for every batch row), second [B, T, C] -> [B, N + T, C]
Tensor concat_tokens(const Tensor& first, const Tensor& second);

// Windows of a sequence, so that a convolution is a linear layer: element (c, j) of a window at
// c * kernel + j, as a weight [out, C, kernel] lies; zeros outside.
// x [B, T, C] -> [B, (T + 2 * padding - kernel) / stride + 1, C * kernel]
Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding);

// Squares of an image, row by row, as a weight [out, channels, size, size] lies. An input: not
// differentiable. image [B, channels, H, W] -> [B, (H / size) * (W / size), channels * size * size]
Tensor patches(const Tensor& image, int64_t size);

// Mixture of experts (Shazeer et al. 2017; Jiang et al. 2024). Letters: R rows, E experts, k
// choices of each row. For rows x [R, C], with one weight (and bias) of each expert:
//   auto [weights, experts] = route(logits, k, true);
//   auto [rows, places, counts] = group_by_expert(experts, E);
//   y = combine(grouped_linear(gather(rows, x), counts, expert_weights, {}), places, weights)

// The k largest of each row of logits [R, E]. weights f32 (f64 of f64) [R, k]: their softmax over
// all experts, or with `normalise` over those k (the same divided by their sum); experts i32 [R,
// k], by descending logit, of equal ones the lower expert first (torch.topk leaves their order
// open).
struct Routing {
  Tensor weights, experts;
};
Routing route(const Tensor& logits, int64_t k, bool normalise);

// The choices [R, k] sorted by expert, those of one expert by row. rows i32 [R*k]: whose choice
// each is; places i32 [R, k]: where each choice went; counts: how many each of the E experts has.
struct Groups {
  Tensor rows, places;
  std::vector<int64_t> counts;
};
Groups group_by_expert(const Tensor& experts, int64_t expert_count);

// y = x weight^T + bias, the next counts[e] rows of x through weights[e] [N, C] and biases[e] [N]
// (or no biases at all). x [sum of counts, C] -> [sum of counts, N]. Unused weights get no
// gradient.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases);

// y[r] = sum over j, ascending, of weights[r, j] * z[places[r, j]].
// z [R*k, C], places i32 [R, k], each place once, weights [R, k] -> f32 (f64 of f64) [R, C]
Tensor combine(const Tensor& z, const Tensor& places, const Tensor& weights);

// E * sum over experts of (choices of it / rows) * (mean of its softmax) (Fedus et al. 2021, eq. 4,
// there with k = 1), over the rows whose `valid` is not 0.
// logits [R, E], experts i32 [R, k], valid i32 [R] or absent -> [1]
Tensor balance_loss(const Tensor& logits, const Tensor& experts, const Tensor& valid = {});

// y[r, j] = x[r, columns[r, j]].   x [R, C], columns i32 [R, k], none twice in a row -> [R, k]
Tensor pick(const Tensor& x, const Tensor& columns);

}  // namespace fovea
