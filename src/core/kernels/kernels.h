#pragma once

// The interface that a device implements: one table of functions over raw pointers. All arrays are
// contiguous and row-major. Letters: B batch, T query tokens, S keys, H heads, G key-value heads, D
// head width, C width, R rows.
//
// Rules for every table:
//  - Inputs are widened to the device's working type (float; double in the reference), and results
//    are rounded once, on store.
//  - The bits of a result do not depend on the number of threads or the SIMD width. The result of
//    a row does not depend on the other rows of the batch.
//  - An output with `add` receives old + result; otherwise its old contents are never read.
//  - In, Out and Indices, weights in panels and pages of keys are in the device's memory. All other
//    arguments, such as units, masks and the list of a text's pages, are in host memory. The
//    results are there when the function returns.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/core/op_options.h"
#include "kernels/entry.h"
#include "kernels/updates.h"

namespace fovea {

// How rows are divided for sums. A unit is the rows of one sequence of the batch, or all rows of a
// pass. Each unit is summed separately, in the kernel's order, which starts again at the unit's
// first row; the tree of sum_tree.h then adds the units' sums.
struct Units {
  int64_t count = 1;                // at least 1
  const int64_t* starts = nullptr;  // [count + 1], in rows; null = equal parts

  int64_t start(int64_t unit, int64_t rows) const {
    return starts != nullptr ? starts[unit] : unit * (rows / count);
  }
  int64_t of(int64_t row, int64_t rows) const {
    if (starts == nullptr) return row / (rows / count);
    return std::upper_bound(starts, starts + count + 1, row) - starts - 1;
  }
};

// Memory for the operand b of products of one shape on one number of threads: the first of them
// keeps b there as it packs it, and the others use it. b may not change before the last of them. A
// device may ignore it.
struct KeptOperand {
  bool filled = false;
  std::vector<std::vector<float>> shares;  // of the threads
};

// c[m, n] (+)= sum over k of a(m, k) * b(k, n), plus bias[n]. The sum is over ascending k, for all
// shapes and numbers of threads; for two bf16 operands, AMX adds blocks of 32 values of k (see
// gemm/tiles.cc). a is stored as [m, k], or [k, m] if transpose_a; b as [k, n], or [n, k] if
// transpose_b. If k counts rows, they may be summed by units; this requires transpose_a, no
// transpose_b and no bias. With one unit and no transpose_a, each sum may continue over a second
// pair of operands, such as those of a low-rank adapter; AMX begins a block of k with them.
struct GemmShape {
  struct Pair {
    In a, b;        // [m, k] and [k, n], or [n, k] if transpose_b, of the dtype of the first a
    int64_t k = 0;  // 0 = none
  };
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  Units units = {};
  Pair second = {};
  KeptOperand* kept = nullptr;  // of b; not with `second` or several units
};

// The storage format of weights for inference. int8 and int4 are integers with a scale for each
// group along k. The formats after them are the block types of GGUF files (kernels/blocks.h).
enum class WeightFormat : uint8_t {
  f32,
  bf16,
  int8,
  int4,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4
};

// A matrix W [N, K], packed once for many products; packed.h describes the layouts.
struct PackedMatrix {
  WeightFormat format = WeightFormat::f32;
  int64_t outputs = 0, width = 0;  // N, K
  int64_t group = 0;  // int8 and int4: weights along k per scale, see group_size(); blocks: 32
  const void* panels = nullptr;      // aligned to a cache line
  const uint16_t* scales = nullptr;  // integers: f16; blocks: see kernels/blocks.h
  uint8_t device = 0;                // of panels and scales

  void show_arrays(DeviceOfCall& call) const { call.meet(In{panels, DType::u8, device}); }
};

// A tensor as R = count rows of C = width elements. The units matter only for sums over rows.
struct Rows {
  int64_t count = 0, width = 0;
  Units units = {};
};

// The classes of logits that are some columns of complete rows: column j is class first + j of
// `count`. A count of 0: the rows are complete.
struct Classes {
  int64_t first = 0, count = 0;
  int64_t of(int64_t width) const { return count > 0 ? count : width; }
};

// How kl_divergence reads its rows: each has probabilities of `count` classes, and logits are
// multiplied by `scale`, 1 / temperature.
struct TopClasses {
  int64_t count = 0;
  float scale = 1;
};

// y [rows, N] (+)= x W^T, plus bias [N]; with an activation f: y (+)= f of this sum.
// `residual` [rows, N], null or of y's dtype, is added last; then y.add is false.
struct PackedProduct {
  Out y;
  In bias;
  PackedMatrix weight;
  std::optional<Activation> activation = {};
  In residual = {};

  void show_arrays(DeviceOfCall& call) const {
    call.meet(y), call.meet(bias), call.meet(weight), call.meet(residual);
  }
};

// Elementary functions of one number; log_sigmoid(x) = -log(1 + exp(-x)).
enum class Elementary : uint8_t { exp, log, log_sigmoid };

// The cells of recurrent layers, with the gates of PyTorch's nn.RNN, nn.GRU (r, z, n) and nn.LSTM
// (i, f, g, o).
enum class Cell : uint8_t { rnn, gru, lstm };
inline int64_t gates_of(Cell cell) { return cell == Cell::rnn ? 1 : cell == Cell::gru ? 3 : 4; }
inline int64_t states_of(Cell cell) { return cell == Cell::lstm ? 2 : 1; }  // h; in an LSTM, also c
// Vectors that the forward pass keeps for the backward pass: of the RNN h, of the GRU r, z, n and
// the recurrent part of n, of the LSTM its gates.
inline int64_t kept_of(Cell cell) { return cell == Cell::rnn ? 1 : 4; }

// One token of `rows` sequences of a recurrent layer of width W with G gates. Arrays of the layer
// are [rows, stride, ...]; the kernels access one element of their second axis.
struct CellShape {
  Cell cell = Cell::lstm;
  int64_t rows = 0, width = 0, stride = 1;
};

// The gradients that a cell computes. dx, of the layer [G W], is the gradient of the input part of
// the gates. du [rows, G W] is that of the recurrent part; du_rows, of the layer [G W], has the
// same values. dh0 and dc0 [rows, W] are those of the previous state, without the part that passes
// through the recurrent product.
struct CellGradients {
  Out dx, du_rows, du, dh0, dc0;

  void show_arrays(DeviceOfCall& call) const {
    for (const Out& y : {dx, du_rows, du, dh0, dc0}) call.meet(y);
  }
};

// Rotates the first `rotated` elements of each head of x [rows, heads, width]. Row r uses the
// angles of row r % angle_rows. `inverse` rotates by the negative angles, for the gradient.
struct Rotation {
  int64_t rows = 0, angle_rows = 0, heads = 0, width = 0, rotated = 0;
  Pairing pairing = Pairing::halves;
  bool inverse = false;
};

// `count` windows of `kernel` tokens. The first begins `padding` tokens before token 0; each of the
// following ones begins `stride` tokens after the previous one.
struct Windows {
  int64_t batch = 0, tokens = 0, width = 0;
  int64_t kernel = 1, stride = 1, padding = 0, count = 0;
};

// Copies `width` columns of x [rows, from_stride], from column `from` on, to y [rows * copies,
// to_stride], from column `to` on: row r to the rows [r * copies, (r + 1) * copies).
struct ColumnCopy {
  int64_t rows = 0, width = 0;
  int64_t from_stride = 0, from = 0;
  int64_t to_stride = 0, to = 0;
  int64_t copies = 1;
};

// Which experts a row may choose: `chosen` of all, or of the `groups_chosen` best of `groups` equal
// groups of consecutive experts.
struct ExpertChoice {
  int64_t chosen = 1;
  int64_t groups = 1, groups_chosen = 1;
};

// q [B, T, H, D], k and v [B, capacity, G, D], of which the first S rows are used; head h reads
// key-value head h / (H / G). In the dropout of the attention weights, i = ((b * H + h) * T + t) *
// round_up(S, 4) + s, where b is the index of the batch row within the step: the rows of this pass
// follow those of earlier passes.
struct AttentionShape {
  int64_t batch = 0, queries = 0, keys = 0, capacity = 0, heads = 0, kv_heads = 0;
  int64_t width = 0;        // of a query and a key
  int64_t value_width = 0;  // of a value and a result; 0 = width
  float scale = 1;
  Mask mask;
  Dropout dropout;
  float softcap = 0;  // scaled scores s become softcap * tanh(s / softcap); 0 = none
  // Null, or a table of the working type with a row of `bias_stride` entries per head: entry s - t
  // + bias_origin is added to the score of query row t and key s. Each of `bias_tables` equal parts
  // of the batch has its own table, so that each unit can have its own gradient.
  In bias = {};
  int64_t bias_stride = 0, bias_origin = 0, bias_tables = 1;

  void show_arrays(DeviceOfCall& call) const { call.meet(bias); }
  int64_t values() const { return value_width > 0 ? value_width : width; }  // width of a value

  int64_t bias_row(int64_t row_of_batch, int64_t head) const {
    return row_of_batch * bias_tables / batch * heads + head;
  }

  // The index, within the step, of this pass's first batch row; dropout counts rows from it.
  int64_t first_dropped_row() const { return dropout.first_unit * (batch / dropout.units); }
};

// Tokens per page of cached keys or values (see kv_page.h): one tile of the attention kernels, so
// that they process pages and contiguous keys in the same order.
inline constexpr int64_t kPageTokens = 64;

// One sequence of a ragged batch. Its queries are the rows [row, row + queries) of q and y [rows,
// H, ...]; its keys and values fill the pages in order, and the last page may hold fewer than
// kPageTokens tokens. A page may be null if the mask hides all of its keys.
struct PagedText {
  int64_t row = 0, queries = 0, keys = 0;
  Mask mask;  // mask of this sequence only: `valid` has at most one entry
  const void* const* key_pages = nullptr;
  const void* const* value_pages = nullptr;
};

struct PagedAttention {
  int64_t heads = 0, kv_heads = 0, width = 0, value_width = 0;  // as in AttentionShape
  // The values are the first value_width elements of the keys, as in latent attention: there are no
  // pages of values.
  bool values_in_keys = false;
  DType pages = DType::f32;  // the stored type of the pages' numbers
  float scale = 1, softcap = 0;
  // Like AttentionShape's bias, but indexed by positions: entry s - p + bias_zero is added for a
  // query at position p and key s.
  In bias = {};
  int64_t bias_stride = 0, bias_zero = 0;

  void show_arrays(DeviceOfCall& call) const { call.meet(bias); }
};

struct PageLayout;  // see kv_page.h
enum class PagePart : uint8_t { keys, values };

// `count` rows x [count, G, D] of keys or values, for the tokens [token, token + count) of a page.
struct PageRows {
  const PageLayout* layout = nullptr;
  PagePart part = PagePart::keys;
  Out page;  // u8
  int64_t token = 0, count = 0;
  In x;

  void show_arrays(DeviceOfCall& call) const { call.meet(page), call.meet(x); }
};

// Returns the shape of the attention of one sequence of a ragged batch.
inline AttentionShape shape_of(const PagedAttention& paged, const PagedText& span) {
  return {.batch = 1,
          .queries = span.queries,
          .keys = span.keys,
          .capacity = span.keys,
          .heads = paged.heads,
          .kv_heads = paged.kv_heads,
          .width = paged.width,
          .value_width = paged.value_width,
          .scale = paged.scale,
          .mask = span.mask,
          .dropout = {},
          .softcap = paged.softcap,
          .bias = paged.bias,
          .bias_stride = paged.bias_stride,
          .bias_origin = paged.bias_zero - span.mask.first_query,
          .bias_tables = 1};
}

// Keeps LayerNorm's scale finite: the scale is 1 / sqrt(variance + value) or, if `outside`, 1 /
// (sqrt(variance) + value).
struct NormEpsilon {
  float value;
  bool outside;
  NormEpsilon(float v, bool out = false) : value(v), outside(out) {}
};

// Keeps the quotient finite if all numbers of a row are 0 (the value of DeepSeek-V3's router).
inline constexpr float kLeastSum = 1e-20f;

struct Kernels {
  const char* device = "";

  Kernel<"gemm", void(Out c, In a, In b, In bias, const GemmShape& shape)> gemm{device};
  // Products of the same x [rows, K] with weights of the same format, width and group; computing
  // them together or separately gives the same bits. f32: the sums are those of gemm. bf16: the
  // same, with x rounded to bf16. int8 and int4: each group of a row of x is rounded to integers q
  // from -127 to 127 times a scale, largest magnitude / 127; the sum of q times weights within a
  // group is exact, and the products (weight scale * scale) * sum are added in one chain over
  // ascending groups.
  Kernel<"packed_linear", void(std::span<const PackedProduct> products, In x, int64_t rows)>
      packed_linear{device};
  // gemm with b = the matrix W [N, K] that w represents, rounded to a's dtype: c (+)= a W^T plus
  // bias, with n = N and k = K, if transpose_b, else c (+)= a W, with n = K and k = N. For training
  // over frozen weights: the first is the forward product, the second the gradient of its input. a
  // is [m, k], with one unit. The bits are those of gemm with the unpacked matrix in a's dtype, but
  // only blocks of it are unpacked at a time.
  Kernel<"packed_gemm", void(Out c, In a, const PackedMatrix& w, In bias, const GemmShape& shape)>
      packed_gemm{device};
  // y[i] = row rows[i] of the matrix that w represents, f32; rows null = all in order.
  Kernel<"unpack_rows", void(Out y, const PackedMatrix& w, Indices rows, int64_t count)>
      unpack_rows{device};

  // Elementwise over `size` elements.
  Kernel<"convert", void(Out y, In x, int64_t size)> convert{device};  // y (+)= x, across dtypes
  Kernel<"add", void(Out y, In a, In b, int64_t size)> add{device};    // y = a + b
  Kernel<"multiply", void(Out y, In a, In b, int64_t size)> multiply{device};  // y (+)= a * b
  Kernel<"scale", void(Out y, In x, float factor, int64_t size)> scale{
      device};  // y (+)= factor * x
  Kernel<"shift", void(Out y, In x, float offset, int64_t size)> shift{device};  // y = x + offset
  // y = cap * tanh(x / cap)
  Kernel<"softcap", void(Out y, In x, float cap, int64_t size)> softcap{device};
  // dx (+)= dy * (1 - tanh(x / cap)^2)
  Kernel<"softcap_backward", void(Out dx, In dy, In x, float cap, int64_t size)> softcap_backward{
      device};
  // y = f(x)
  Kernel<"activation", void(Out y, In x, Activation kind, int64_t size)> activation{device};
  // y = f(x) * factor, with f(x) rounded to x's dtype
  Kernel<"gated_activation", void(Out y, In x, In factor, Activation kind, int64_t size)>
      gated_activation{device};
  // dx (+)= dy * f'(x)
  Kernel<"activation_backward", void(Out dx, In dy, In x, Activation kind, int64_t size)>
      activation_backward{device};
  // dfactor (+)= dy * f(x),  dx (+)= (dy * factor) * f'(x), where f(x) and dy * factor are rounded
  // to x's dtype
  Kernel<"gated_activation_backward",
         void(Out dx, Out dfactor, In dy, In x, In factor, Activation kind, int64_t size)>
      gated_activation_backward{device};
  // y (+)= f(x)
  Kernel<"elementary", void(Out y, In x, Elementary kind, int64_t size)> elementary{device};
  // dx (+)= dy * f'(x)
  Kernel<"elementary_backward", void(Out dx, In dy, In x, Elementary kind, int64_t size)>
      elementary_backward{device};
  // y (+)= the smaller of a and b; NaN if one of them is NaN
  Kernel<"minimum", void(Out y, In a, In b, int64_t size)> minimum{device};
  // dx (+)= dy where x < other, dy / 2 where they are equal, else 0
  Kernel<"minimum_backward", void(Out dx, In dy, In x, In other, int64_t size)> minimum_backward{
      device};
  // y (+)= min(max(x, least), most); NaN stays NaN
  Kernel<"clip", void(Out y, In x, float least, float most, int64_t size)> clip{device};
  // dx (+)= dy where least <= x <= most, else 0
  Kernel<"clip_backward", void(Out dx, In dy, In x, float least, float most, int64_t size)>
      clip_backward{device};
  // y (+)= x with dropout; also computes dx from dy
  Kernel<"dropout", void(Out y, In x, const Dropout& dropout, int64_t size)> dropout{device};

  // Over rows [R, C]. Sums over rows are computed in blocks of 64 rows of a unit, then over the
  // unit's blocks in order, then over the units by their tree.
  Kernel<"sum_rows", void(Out y, In x, Rows rows)> sum_rows{device};  // y[C] (+)= sum over rows
  // y = (x - mean) * scale * weight + bias; bias may be null. mean [R] and scale [R] are kept for
  // the backward pass and are always float (double in an f64 call); NormEpsilon defines scale.
  Kernel<"layer_norm",
         void(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon, Rows rows)>
      layer_norm{device};
  Kernel<"layer_norm_backward", void(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale,
                                     In weight, NormEpsilon epsilon, Rows rows)>
      layer_norm_backward{device};
  // y = x * scale * weight, scale = 1 / sqrt(mean(x^2) + epsilon)
  Kernel<"rms_norm", void(Out y, Out scale, In x, In weight, float epsilon, Rows rows)> rms_norm{
      device};
  Kernel<"rms_norm_backward",
         void(Out dx, Out dweight, In dy, In x, In scale, In weight, Rows rows)>
      rms_norm_backward{device};

  // y (+)= x * factors + bias; bias may be null.
  Kernel<"scale_columns", void(Out y, In x, In factors, In bias, Rows rows)> scale_columns{device};
  // y = weight * tanh(alpha * x) + bias; alpha has one element, bias may be null.
  Kernel<"dynamic_tanh", void(Out y, In x, In alpha, In weight, In bias, Rows rows)> dynamic_tanh{
      device};
  // With t = tanh(alpha * x) and g = dy * weight * (1 - t^2): dx (+)= alpha * g, dweight (+)= the
  // sum over rows of dy * t, dbias (+)= that of dy, dalpha (+)= that of the row's sum of g * x.
  Kernel<"dynamic_tanh_backward", void(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x,
                                       In alpha, In weight, Rows rows)>
      dynamic_tanh_backward{device};

  Kernel<"softmax", void(Out y, In x, Rows rows)> softmax{device};  // softmax of each row
  // dx (+)= y (dy - dy . y)
  Kernel<"softmax_backward", void(Out dx, In dy, In y, Rows rows)> softmax_backward{device};
  // y = x / (sum of the row + kLeastSum)
  Kernel<"divide_by_sum", void(Out y, In x, Rows rows)> divide_by_sum{device};
  Kernel<"divide_by_sum_backward", void(Out dx, In dy, In x, Rows rows)> divide_by_sum_backward{
      device};
  // Rotates pairs of elements by angles given as cosines and sines [angle_rows, rotated / 2]: (a,
  // b) -> (a cos - b sin, b cos + a sin).
  Kernel<"rotate", void(Out y, In x, In cosines, In sines, const Rotation& rotation)> rotate{
      device};
  // The next state of recurrent cells. x, of the layer [G W]: the input part of the gates; u [rows,
  // G W]: their recurrent part; both with their biases. h0 and c0 [rows, W]: the previous state; c
  // only in LSTMs. v = x + u is the sum of both parts of a gate:
  //   rnn   h = tanh(v)
  //   gru   r = sigmoid(v), z = sigmoid(v), n = tanh(x + r u), h = (1 - z) n + z h0
  //   lstm  i, f, o = sigmoid(v), g = tanh(v), c = f c0 + i g, h = o tanh(c)
  // y, of the layer [W], is h in its dtype; `kept`, of the layer [kept_of(cell) W], is for the
  // backward pass. u, the states and `kept` have the working type.
  Kernel<"recurrent_cell",
         void(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0, const CellShape& shape)>
      recurrent_cell{device};
  // The gradients of the new state: dy, of the layer [W], from this layer's output; dh and dc
  // [rows, W] from later tokens.
  Kernel<"recurrent_cell_backward", void(const CellGradients& d, In dy, In dh, In dc, In kept,
                                         In h0, In c0, In c, const CellShape& shape)>
      recurrent_cell_backward{device};

  // y [B, count, C * kernel]: element (c, j) of a window is at c * kernel + j; zeros outside x [B,
  // T, C].
  Kernel<"unfold", void(Out y, In x, const Windows& windows)> unfold{device};
  Kernel<"unfold_backward", void(Out dx, In dy, const Windows& windows)> unfold_backward{device};
  // y (+)= x
  Kernel<"copy_columns", void(Out y, In x, const ColumnCopy& copy)> copy_columns{device};
  // dx (+)= the sum of dy over the copies, in ascending order
  Kernel<"copy_columns_backward", void(Out dx, In dy, const ColumnCopy& copy)>
      copy_columns_backward{device};
  // experts i32 [R, choice.chosen]: for each row of scores [R, E], the experts with the largest
  // scores + bias [E] (bias may be null), in descending order; of equal ones, the lower expert
  // comes first. A group's score is that of its best expert; with a bias, the sum of those of its
  // two best ones. The experts are chosen one after the other. Comparisons with NaN are false, so a
  // NaN is chosen only if it is the first of the remaining scores.
  Kernel<"choose_experts",
         void(Out experts, In scores, In bias, const ExpertChoice& choice, Rows rows)>
      choose_experts{device};
  // Returns the index of the first of the numbers that is not in 0 .. limit - 1; -1 if there is
  // none.
  Kernel<"first_outside", int64_t(Indices numbers, int64_t count, int64_t limit)> first_outside{
      device};
  // Sorts choices [R, k] of `experts` experts by expert, then by row. rows i32 [R k]: the row of
  // each sorted choice; places i32 [R, k]: the sorted index of each choice; counts [experts], in
  // the memory of the host: the number of choices of each expert.
  Kernel<"group_by_expert", void(Out rows, Out places, int64_t* counts, Indices choices,
                                 int64_t row_count, int64_t k, int64_t experts)>
      group_by_expert{device};
  // y[r, j] (+)= x[r, columns[r, j]], columns [R, k]; x has `rows`
  Kernel<"pick", void(Out y, In x, Indices columns, int64_t k, Rows rows)> pick{device};
  // dx[r, c] (+)= the sum of dy[r, j] over the j with columns[r, j] = c, in ascending order
  Kernel<"pick_backward", void(Out dx, In dy, Indices columns, int64_t k, Rows rows)> pick_backward{
      device};
  // y[r] = sum over j of weights[r, j] * z[places[r, j]], j ascending over `choices`.
  Kernel<"combine", void(Out y, In z, Indices places, In weights, int64_t choices, Rows rows)>
      combine{device};
  // dz[places[r, j]] (+)= weights[r, j] * dy[r];  dweights[r, j] (+)= dy[r] . z[places[r, j]].
  // No index occurs twice in `places`.
  Kernel<"combine_backward", void(Out dz, Out dweights, In dy, In z, Indices places, In weights,
                                  int64_t choices, Rows rows)>
      combine_backward{device};

  // y[i] (+)= table[ids[i]]; every id is inside the table (the ops check it).
  Kernel<"embedding", void(Out y, In table, Indices ids, Rows rows)> embedding{device};
  // dtable[id] (+)= the sum of the rows of dy with this id: in ascending order within a unit, then
  // over the units by their tree. dtable has `entries` rows.
  Kernel<"embedding_backward", void(Out dtable, In dy, Indices ids, Rows rows, int64_t entries)>
      embedding_backward{device};

  // y [B, T, H, value width] = softmax(scale * q k^T, over the mask's keys) v; lse [B, H, T] = log
  // of the softmax's sum, float (double in an f64 call). For a query that sees no key, y = 0 and
  // lse = -inf. Keys are processed in tiles of kPageTokens that begin at key 0. If q, k and v are
  // bf16, the weights are rounded too: powers of two, relative to an integer power. They are
  // divided by the sum of the rounded weights, which loses least, since y remains a weighted mean
  // of values. The products are those of bf16 in architecture.md's class "common", on every CPU.
  Kernel<"attention", void(Out y, Out lse, In q, In k, In v, const AttentionShape& shape)>
      attention{device};
  // Like `attention`, without lse, for sequences whose keys and values are stored in pages of f32,
  // bf16 or i8. With pages of f32, each sequence's rows of y have the same bits as the result of
  // `attention` in f32 for that sequence alone. With pages of bf16, queries are rounded to bf16; if
  // they are bf16, the bits are those of `attention` in bf16.
  Kernel<"attention_paged",
         void(Out y, In q, const PagedAttention& shape, const std::vector<PagedText>& spans)>
      attention_paged{device};
  // Stores rows in pages, rounded to the pages' type.
  Kernel<"put_in_pages", void(std::span<const PageRows> rows)> put_in_pages{device};
  Kernel<"attention_backward", void(Out dq, Out dk, Out dv, Out dbias, In dy, In q, In k, In v,
                                    In y, In lse, const AttentionShape& shape)>
      attention_backward{device};
  // The attention weights without dropout, for inspection: w [B, H, T, S]; 0 for masked keys.
  Kernel<"attention_weights", void(Out w, In q, In k, const AttentionShape& shape)>
      attention_weights{device};

  // With q = (1 - smoothing) onehot(target) + smoothing / C:  losses[R] = -q . log softmax(logits),
  // 0 if the target is negative (ignored); lse[R] = log of the sum of exp(logits), kept for the
  // backward pass.
  Kernel<"cross_entropy",
         void(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows)>
      cross_entropy{device};
  // dlogits (+)= (softmax(logits) - q) * factor; 0 in ignored rows. With `factors` [R], the factor
  // of row r is factor * factors[r]. lse and targets are those of complete rows, of which logits
  // and dlogits may be some columns.
  Kernel<"cross_entropy_backward", void(Out dlogits, In logits, In lse, Indices targets, In factors,
                                        float factor, float smoothing, Rows rows, Classes classes)>
      cross_entropy_backward{device};
  // With z = scale * logits, row by row: lse[R] = log of the sum of exp(z), rest[R] = that over the
  // classes not in top[R, k], -infinity if top has all, and
  //   losses[R] = sum over j < k of p_j (log p_j - (z[top_j] - lse)) + p_k (log p_k - (rest -
  //   lse)),
  // where log_p [R, k + 1] has log p_j, and log p_k of all other classes together; terms of
  // log p = -infinity are 0. The classes of a row ascend; if top[r, 0] < 0, the row is ignored:
  // losses, lse and rest are 0.
  Kernel<"kl_divergence", void(Out losses, Out lse, Out rest, In logits, Indices top, In log_p,
                               const TopClasses& classes, Rows rows)>
      kl_divergence{device};
  // dlogits (+)= factor * (exp(z - lse) - p_j) for the classes top_j, and factor * exp(z - rest) *
  // (exp(rest - lse) - p_k) for the others; 0 in ignored rows. dlogits and logits may be some
  // columns of complete rows.
  Kernel<"kl_divergence_backward",
         void(Out dlogits, In logits, In lse, In rest, Indices top, In log_p,
              const TopClasses& classes, float factor, Rows rows, Classes columns)>
      kl_divergence_backward{device};

  // In place, all float: updates m, v, then weight -= rate * (m / correction1 / (sqrt(v /
  // correction2) + epsilon) + decay * weight) (Loshchilov and Hutter 2019).
  Kernel<"adamw", void(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size)>
      adamw{device};
  // The same with moments in 8 bits. They are rounded to one of the two nearest codes, at random by
  // their distances, so that the mean of many roundings is the number itself.
  Kernel<"packed_adamw", void(Out weight, const PackedMoments& moments, In gradient,
                              const AdamW& step, int64_t size)>
      packed_adamw{device};
  // In place, all float, with g = gradient_scale * gradient + decay * weight: m = momentum * m + g;
  // weight -= rate * (nesterov ? g + momentum * m : m). Without m (null), weight -= rate * g.
  Kernel<"sgd", void(Out weight, Out m, In gradient, const Sgd& step, int64_t size)> sgd{device};
  // In place, all float, with g = gradient_scale * gradient: weight -= rate * (sign(beta1 * m + (1
  // - beta1) * g) + decay * weight), then m = beta2 * m + (1 - beta2) * g; sign(0) = 0.
  Kernel<"lion", void(Out weight, Out m, In gradient, const Lion& step, int64_t size)> lion{device};
  // The sum of x and the sum of its squares, in double and in a fixed order: within blocks of 4096,
  // then over the blocks.
  Kernel<"sum", double(In x, int64_t size)> sum{device};
  Kernel<"sum_of_squares", double(In x, int64_t size)> sum_of_squares{device};
};

// Naive loops in double: the specification. Supports f32, bf16 and f64.
const Kernels& reference_kernels();
const Kernels& cpu_kernels();  // vectors and tiles; f32 and bf16

// Returns the table in use for a dtype: f64 always uses the reference kernels; after
// use_isa("reference") or with FOVEA_ISA=reference, all dtypes do. use_kernels() sets the table of
// the other dtypes.
const Kernels& kernels_for(DType dtype);
void use_kernels(const Kernels* table);  // for tests; null = the default

}  // namespace fovea
