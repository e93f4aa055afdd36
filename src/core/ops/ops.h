#pragma once

// The ops of fovea, with their formulas; most are differentiable. Most are implemented in a file of
// the same name, the forward computation above the gradient. All support f32, bf16 (computed in
// float) and f64 (reference kernels only, for gradient checks), and throw InvalidArgument if shapes
// do not match. Inputs are on one device, where the result is created; indices (ids, targets,
// places) may also be on the host, where they are checked. Letters: B batch, T query tokens, S
// keys, H heads, G key-value heads, D head width, C width, V vocabulary.

#include "kernels/kernels.h"
#include "tensor/tensor.h"

namespace fovea {

// y = x weight^T + bias.   x [..., C], weight [N, C], bias [N] or empty -> [..., N]
// The product is computed in x's dtype (weights are rounded to it); y has dtype `out`.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out);
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// A low-rank term: scale (input down^T) up^T.   input [..., C], down [R, C], up [N, R] -> [..., N]
struct LowRank {
  Tensor input, down, up;
  float scale = 1;
};
// y = x weight^T + bias + the term, whose input may be x itself. The sums of x weight^T continue
// over the term, and y is rounded once.   x and input of one dtype -> [..., N] of this dtype
Tensor adapted_linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const LowRank& low);

// y[...] = table[ids[...]].   ids i32 [...], table [V, C] -> [..., C]
// Rows with the id `padding` contribute no gradient to the table.
Tensor embedding(const Tensor& ids, const Tensor& table, int64_t padding = -1);

// Like embedding, for rows of a computed tensor instead of a parameter.
// y[...] = x[rows[...]].   rows i32 [...], x [R, C] -> [..., C]
Tensor gather(const Tensor& rows, const Tensor& x);

// y = (x - mean) / sqrt(variance + epsilon) * weight + bias   (Ba et al. 2016, eq. 4); if epsilon
// is outside the root: (x - mean) / (sqrt(variance) + epsilon) * weight + bias.
// x [..., C] -> [..., C] of dtype `out`
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, NormEpsilon epsilon,
                  DType out);

// y = x / sqrt(mean(x^2) + epsilon) * weight   (Zhang and Sennrich 2019, eq. 4).
// x [..., C] -> [..., C] of dtype `out`
Tensor rms_norm(const Tensor& x, const Tensor& weight, float epsilon, DType out);

// y = weight * tanh(alpha * x) + bias   (DyT: Zhu et al. 2025, eq. 1), instead of a norm.
// x [..., C], alpha [1], weight and bias [C], bias may be empty -> [..., C] of dtype `out`
Tensor dynamic_tanh(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias,
                    DType out);

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
};
// y = softmax(scale * q k^T, over the keys that the mask allows) v   (Vaswani et al. 2017, eq. 1).
// q [B, T, H, D]; k [B, capacity, G, D] and v [B, capacity, G, D'], of which the first `keys` are
// used -> [B, T, H, D']
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options);

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
};
// Attention for the sequences of a ragged batch, with keys and values in pages, as in decoding. q
// [..., H, D] holds the rows of all spans -> [..., H, D']. Not differentiable.
Tensor attention_paged(const Tensor& q, const std::vector<PagedText>& spans,
                       const PagedOptions& options);

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

// Concatenates along the last axis: for each head, the vector that all heads share before its own.
// shared [B, T, 1, N], own [B, T, H, D] -> [B, T, H, N + D]
Tensor concat_shared(const Tensor& shared, const Tensor& own);

// Multiplies a part of each head's vector by a matrix of the head, as in the decoding of latent
// attention: y[r, h] = W_h x[r, h, begin:], or W_h^T x[r, h, begin:] with `transpose`, where W_h is
// the rows of `weight` that belong to head h. Not differentiable.
// x [..., H, D], weight [H N, K] -> [..., H, N] for D - begin = K; with `transpose` [..., H, K] for
// D - begin = N
Tensor linear_by_head(const Tensor& x, int64_t begin, const Tensor& weight, bool transpose);

// Rotary positions (Su et al. 2021, eq. 34): rotates pairs of the first R of D elements by an
// angle, (a, b) -> (a cos - b sin, b cos + a sin); copies elements from R on. Pairing: halves (i, i
// + R/2), as in most models of Hugging Face; neighbours (2i, 2i + 1), as in the paper.
// x [B, T, H, D]; cosines, sines f32 [T, R/2] for all batch rows, or [B*T, R/2] -> [B, T, H, D]
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing);

// y = f(x), elementwise: relu, gelu (exact), gelu_tanh (GPT-2's), silu, tanh, quick_gelu (CLIP's),
// relu_squared, sigmoid.
Tensor activation(const Tensor& x, Activation kind);

// y = f(x) * factor, elementwise: the hidden layer of a GLU (Shazeer 2020).
Tensor gated_activation(const Tensor& x, const Tensor& factor, Activation kind);

// y = a + b, elementwise, of a's dtype.
Tensor add(const Tensor& a, const Tensor& b);

// y = a - b, elementwise, of a's dtype.
Tensor subtract(const Tensor& a, const Tensor& b);

// The sum and the mean of all elements, as f32 (f64 for f64).   x [...] -> [1]
Tensor sum(const Tensor& x);
Tensor mean(const Tensor& x);

// y = exp(x), log(x) and log sigmoid(x) = -log(1 + exp(-x)), elementwise, as f32 (f64 for f64).
// x [...] -> [...]
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor log_sigmoid(const Tensor& x);

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

// y[r] = 1 / sqrt(sum over the row of x^2), or 0 for a row of zeros, as f32 (f64 for f64), finite,
// summed in double. Not differentiable: weight norms of DoRA count as constants.   x [R, C] -> [R]
Tensor inverse_row_lengths(const Tensor& x);

// y = softmax over the last axis, as f32 (f64 for f64).   x [..., C] -> [..., C]
Tensor softmax(const Tensor& x);

// y = x / (sum over the last axis + 1e-20), for x of at least 0.   x [..., C] -> [..., C]
Tensor divide_by_sum(const Tensor& x);

// y = x in `dtype`; returns x itself if it has that dtype.
Tensor cast(const Tensor& x, DType dtype);

// y = a * b, elementwise.
Tensor multiply(const Tensor& a, const Tensor& b);

// Inverted dropout (Srivastava et al. 2014); probability 0 is the identity.
Tensor dropout(const Tensor& x, const Dropout& options);

// sum over rows of -log softmax(logits[r])[targets[r]] / divisor; targets < 0 are ignored.
// logits [..., V], targets i32 [...] -> f64 [1]. Divisor 0 = the number of targets that are not
// ignored: the mean. With smoothing (Szegedy et al. 2016, section 7) the target has 1 - smoothing
// of the weight, and all V classes share the rest.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor = 0,
                     float smoothing = 0);

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
                            const Tensor& targets, const LossOptions& options = {});

// y[r] = log softmax(logits[r])[targets[r]]; 0 where targets[r] < 0.
// logits [..., V], targets i32 [...] -> f32 (f64 for f64) [...]
Tensor log_probability(const Tensor& logits, const Tensor& targets);

// Returns log_probability(softcap(linear(x, weight, bias)), targets), with the same bits, but never
// stores all logits; softcap 0 = none. Blocks of 0 are those of logit_blocks(). x [..., C], weight
// [V, C], bias [V] or empty, targets i32 [...] -> f32 (f64 for f64) [...]
Tensor linear_log_probability(const Tensor& x, const Tensor& weight, const Tensor& bias,
                              const Tensor& targets, float softcap = 0, LogitBlocks blocks = {});

// y[n] = the sum of the next counts[n] elements of x.   x [...] with as many elements as the counts
// sum to -> f64 [N]
Tensor segment_sums(const Tensor& x, const std::vector<int64_t>& counts);

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

// Mixture of experts (Shazeer et al. 2017; Jiang et al. 2024). Letters: R rows, E experts, k
// choices per row. For rows x [R, C], with one weight (and bias) per expert:
//   auto [weights, experts] = route(logits, {.choice = {.chosen = k}});
//   auto [rows, places, counts] = group_by_expert(experts, E);
//   y = combine(grouped_linear(gather(rows, x), counts, expert_weights, {}), places, weights)

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

struct Groups {
  Tensor rows, places;
  std::vector<int64_t> counts;
};
// Sorts the choices [R, k] by expert, then by row. rows i32 [R*k]: the row of each sorted choice;
// places i32 [R, k]: the sorted index of each choice; counts [E]: the number of choices of each
// expert.
Groups group_by_expert(const Tensor& experts, int64_t expert_count);

// y = x weight^T + bias, where the next counts[e] rows of x use weights[e] [N, C] and biases[e] [N]
// (or no biases). x [sum of counts, C] -> [sum of counts, N]. Unused weights get no gradient.
Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases);

// y[r] = sum over j, ascending, of weights[r, j] * z[places[r, j]].
// z [R*k, C], places i32 [R, k], all different, weights [R, k] -> f32 (f64 for f64) [R, C]
Tensor combine(const Tensor& z, const Tensor& places, const Tensor& weights);

// E * sum over experts of (number of its choices / rows) * (mean of its probabilities), over the
// rows whose `valid` is not 0 (Fedus et al. 2021, eq. 4, where k = 1).
// probabilities f32 (f64 for f64) [R, E], experts i32 [R, k], valid i32 [R] or empty -> [1]
Tensor balance_loss(const Tensor& probabilities, const Tensor& experts, const Tensor& valid = {});

// y[r, j] = x[r, columns[r, j]].   x [R, C], columns i32 [R, k] -> [R, k]
Tensor pick(const Tensor& x, const Tensor& columns);

}  // namespace fovea
