#pragma once

// The ops for models that are trained with adapters, decoded, distilled or made of experts, beside
// those of fovea/core/ops.h. An op is implemented in the file of its group, the forward
// computation above the gradient.

#include <vector>

#include "fovea/core/ops.h"
#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace fovea {

// layer_norm() whose epsilon may be outside the root: (x - mean) / (sqrt(variance) + epsilon) *
// weight + bias.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, NormEpsilon epsilon,
                  DType out);

// A low-rank term: scale (input down^T) up^T.   input [..., C], down [R, C], up [N, R] -> [..., N]
struct LowRank {
  Tensor input, down, up;
  float scale = 1;
};
// y = x weight^T + bias + the term, whose input may be x itself. The sums of x weight^T continue
// over the term, and y is rounded once.   x and input of one dtype -> [..., N] of this dtype
Tensor adapted_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const LowRank& low);

// The products of queries and keys: y[b, h, t, s] = q[b, t, h] . k[n, s, g], where g is the
// key-value head of h and n the part of b: each of N equal parts of the batch has its own keys.
// q [B, T, H, D], k [N, S, G, D] -> f32 (f64 for f64) [B, H, T, S]
Tensor head_products(const Tensor& q, const Tensor& k);

// The terms of attention scores that depend on the content of one token and the distance to the
// other (He et al. 2021, "DeBERTa", eq. 4): y[b, h, t, s] = scale * (of_queries[b, h, t, r] +
// of_keys[b, h, s, r]), r = rows[t - s + S - 1], where R vectors represent the distances.
// of_queries [B, H, T, R], of_keys [B, H, S, R], one of them may be empty, rows i32 [T + S - 1] ->
// f32 (f64 for f64) [B, H, T, S]
Tensor distance_terms(const Tensor& of_queries, const Tensor& of_keys, const Tensor& rows,
                      float scale);

struct PagedOptions {
  int64_t kv_heads = 0;
  int64_t value_width = 0;      // D'; 0 = D
  bool values_in_keys = false;  // the values are the first D' elements of the keys
  DType pages = DType::f32;
  float scale = 1, softcap = 0;
  // [H, distances] of the working type, or empty: entry s - p + bias_zero is added to the score of
  // a query at position p and key s.
  Tensor bias = {};
  int64_t bias_zero = 0;
  Tensor sinks = {};  // as in AttentionOptions
};
// Attention for the sequences of a ragged batch, with keys and values in pages, as in decoding. q
// [..., H, D] holds the rows of all spans -> [..., H, D']. Not differentiable.
Tensor attention_paged(const Tensor& q, const std::vector<PagedText>& spans,
                       const PagedOptions& options);

// Multiplies a part of each head's vector by a matrix of the head, as in the decoding of latent
// attention: y[r, h] = W_h x[r, h, begin:], or W_h^T x[r, h, begin:] with `transpose`, where W_h is
// the rows of `weight` that belong to head h. Not differentiable.
// x [..., H, D], weight [H N, K] -> [..., H, N] for D - begin = K; with `transpose` [..., H, K] for
// D - begin = N
Tensor linear_by_head(const Tensor& x, int64_t begin, const Tensor& weight, bool transpose);

// y[r] = 1 / sqrt(sum over the row of x^2), or 0 for a row of zeros, as f32 (f64 for f64), finite,
// summed in double. Not differentiable: weight norms of DoRA count as constants.   x [R, C] -> [R]
Tensor inverse_row_lengths(const Tensor& x);

// Probabilities of k classes of each of R rows, and of all other classes together.
struct TopProbabilities {
  Tensor classes;  // i32 [R, k], ascending; below 0: the row is ignored
  Tensor log_p;    // f32 or f64 [R, k + 1]: logarithms, the last one of the other classes
};
// temperature^2 * sum over rows of KL(p || softmax(logits / temperature)) / divisor, where the
// classes that p does not list are one class (Hinton et al. 2015, whose factor temperature^2 keeps
// the size of gradients). Divisor 0 = the number of rows that are not ignored: the mean.
// logits [..., V] -> f64 [1]
Tensor kl_divergence(const Tensor& logits, const TopProbabilities& p, double divisor = 0,
                     float temperature = 1);

// Makes a loss (1 - share) * cross-entropy + share * kl_divergence from the teacher.
struct Distillation {
  TopProbabilities teacher;
  float temperature = 1, share = 0;
};

// Logits are computed in blocks of about kLogitsOfBlock elements (32 MB) if they have more, and if
// the matrix is frozen or nothing is recorded. The gradient of the matrix takes a third product
// with it in the backward pass; then only more than kLogitsAtOnce elements (512 MB, and as many for
// their gradients) are computed in blocks.
inline constexpr int64_t kLogitsAtOnce = int64_t{1} << 27, kLogitsOfBlock = int64_t{1} << 23;
// The sizes of blocks of complete rows [rows, V], and of blocks of columns [R, columns].
struct LogitBlocks {
  int64_t rows = 0, columns = 0;
};
LogitBlocks logit_blocks(int64_t rows, int64_t classes);

struct LossOptions {
  double divisor = 0;                          // as in cross_entropy()
  float smoothing = 0;                         // as in cross_entropy()
  const Distillation* distillation = nullptr;  // used during the call
  // linear_cross_entropy() only:
  float softcap = 0;        // 0 = none
  LogitBlocks blocks = {};  // 0 = those of logit_blocks()
};
// logits [..., V], targets i32 [...] -> f64 [1]
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const LossOptions& options);
// Returns cross_entropy(softcap(linear(x, weight, bias)), targets, options), with the same bits,
// but never stores all logits. x [..., C], weight [V, C], bias [V] or empty, targets i32 [...] ->
// f64 [1]
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Tensor& targets, const LossOptions& options);

// Returns log_probability(softcap(linear(x, weight, bias)), targets), with the same bits, but never
// stores all logits; softcap 0 = none. Blocks of 0 are those of logit_blocks(). x [..., C], weight
// [V, C], bias [V] or empty, targets i32 [...] -> f32 (f64 for f64) [...]
Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& targets, float softcap, LogitBlocks blocks = {});

// y[n] = the sum of the next counts[n] elements of x.   x [...] with as many elements as the counts
// sum to -> f64 [N] on the CPU
Tensor segment_sums(const Tensor& x, const std::vector<int64_t>& counts);

// The states h of a recurrent layer for each token, from a first state of 0. The gates are x, their
// input part with its bias, and their recurrent part u = h' weight^T + bias, where h' is the state
// after the previous token. Cells: Elman 1990 (rnn), Cho et al. 2014 (gru, in PyTorch's form),
// Hochreiter and Schmidhuber 1997 (lstm, with forget gates); see recurrent_cell in kernels.h. The
// states are f32 (f64 for f64); products read them in x's dtype.
// x [B, T, G W], weight [G W, W], bias [G W] or empty -> [B, T, W]
Tensor recurrence(const Tensor& x, const Tensor& weight, const Tensor& bias, Cell cell);

// The state of R texts in decoding: h and, of an LSTM, c, f32 (f64 for f64) [R, W].
struct CellState {
  Tensor h, c;
};
CellState zero_state(Cell cell, int64_t rows, int64_t width, DType dtype,
                     const Device& device = cpu_device());
// recurrence() for one token of each text: replaces `state` by the next one and returns its h in
// x's dtype. No gradient.   x [R, G W], u f32 (f64 for f64) [R, G W] -> [R, W]
Tensor recurrent_step(const Tensor& x, const Tensor& u, CellState& state, Cell cell);

// Linear attention with decay; see linear_attention in entries.inc. Head h of H reads the queries
// and keys of head h / (H / G), or h % G. Computed in chunks of 64 tokens from the text's begin.
struct LinearAttentionOptions {
  float scale = 1;     // factor of the queries
  bool delta = true;   // values are corrected by what the state has for their key
  bool tiled = false;  // head h reads the queries and keys of head h % G
  // The tokens of each batch row; the results of the others are 0. Empty = all; else no gradient.
  std::vector<Interval> valid = {};
};
// q and k [B, T, G, D], v [B, T, H, V], beta and decay (the logarithm, <= 0) f32 (f64 for f64) [B,
// T, H] -> [B, T, H, V]
Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                        const Tensor& decay, const LinearAttentionOptions& options = {});
// The same for a ragged batch, with the chunks of earlier tokens. No gradient.
Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& beta,
                        const Tensor& decay, std::span<const LinearText> texts,
                        const LinearAttentionOptions& options);

// y[b, t, c] = bias[c] + the sum over j of weight[c, j] * x[b, t - K + 1 + j, c]: a convolution of
// each column over the last K tokens. x [B, T, C], weight [C, K], bias [C] or empty -> [B, T, C]
// `valid` as in LinearAttentionOptions.
Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const std::vector<Interval>& valid = {});
// The same for a ragged batch of rows x [1, R, C]. No gradient.
Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   std::span<const ConvText> texts);

// xIELU (Huang 2024, 4), elementwise, with p = softplus(alpha_p) and n = beta + softplus(alpha_n):
//   y = p x^2 + beta x                              where x > 0,
//   y = n (exp(min(x, epsilon)) - 1 - x) + beta x   elsewhere.
// x [...]; alpha_p, alpha_n, beta, epsilon [1], of which the first two have gradients -> [...]
Tensor xielu(const Tensor& x, const Tensor& alpha_p, const Tensor& alpha_n, const Tensor& beta,
             const Tensor& epsilon);

// Mixture of experts (Shazeer et al. 2017; Jiang et al. 2024). Letters: R rows, E experts, k
// choices per row. For rows x [R, C], with one weight (and bias) per expert:
//   auto [weights, experts] = route(logits, {.choice = {.chosen = k}});
//   auto [rows, slots, counts] = group_by_expert(experts, E);
//   y = combine(grouped_linear(gather(rows, x), counts, expert_weights, {}), slots, weights)

struct Routing {
  Tensor weights, experts;
};
struct RouteOptions {
  ExpertChoice choice = {};  // `chosen` is k
  bool normalise = true;     // the weights of the chosen experts sum to `scale`
  // The scores are the sigmoids of the logits (DeepSeek-AI 2024, "DeepSeek-V3", eq. 15) instead of
  // their softmax.
  bool sigmoid = false;
  float scale = 1;  // factor of the weights
};
// Chooses the k experts of each row of logits [R, E] with the largest score + bias; bias [E], which
// only affects the choice, or empty. With groups, only the experts of the best groups are eligible:
// the score of a group is that of its best expert (DeepSeek-AI 2024, "DeepSeek-V2", 2.2.2) or, with
// a bias, the sum of those of its two best ones (DeepSeek-V3). weights f32 (f64 for f64) [R, k]:
// scale times the scores, or with `normalise` times their share in the sum of those chosen. experts
// i32 [R, k], in descending order of choice; of equal values, the lower expert (or group) comes
// first (torch.topk does not define their order).
Routing route(const Tensor& logits, const RouteOptions& options, const Tensor& bias = {});
// SparseMixer-v2 (Liu et al. 2024, "GRIN", 3), without its samples: chooses the `chosen` experts of
// each row of logits [R, E] with the largest logits. The weight of a choice is that of the softmax
// over the experts that are not chosen yet and whose logits are close to the choice's, b: those
// with (b - logit) / max(|logit|, b) <= 2 tolerance. Shapes and order as in route().
Routing sparse_mixer(const Tensor& logits, int64_t chosen, float tolerance);

struct Groups {
  Tensor rows, slots;
  std::vector<int64_t> counts;
};
// Sorts the choices [R, k] by expert, then by row. rows i32 [R*k]: the row of each sorted choice;
// slots i32 [R, k]: the sorted index of each choice; counts [E]: the number of choices of each
// expert.
Groups group_by_expert(const Tensor& experts, int64_t expert_count);

// y = x weight^T + bias, where the next counts[e] rows of x use weights[e] [N, C] and biases[e] [N]
// (or no biases). x [sum of counts, C] -> [sum of counts, N]. Unused weights get no gradient.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases);

// y[r] = sum over j, ascending, of weights[r, j] * z[slots[r, j]].
// z [R*k, C], slots i32 [R, k], all different, weights [R, k] -> f32 (f64 for f64) [R, C]
Tensor combine(const Tensor& z, const Tensor& slots, const Tensor& weights);

// E * sum over experts of (number of its choices / rows) * (mean of its probabilities), over the
// rows whose `valid` is not 0 (Fedus et al. 2021, eq. 4, where k = 1).
// probabilities f32 (f64 for f64) [R, E], experts i32 [R, k], valid i32 [R] or empty -> [1]
Tensor balance_loss(const Tensor& probabilities, const Tensor& experts, const Tensor& valid = {});

}  // namespace fovea
