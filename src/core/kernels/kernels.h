#pragma once

// The interface that a device implements: one table of functions over raw pointers. All arrays are
// contiguous and row-major. Letters: B batch, T query tokens, S keys, H heads, G key-value heads, D
// head width, C width, R rows.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/core/op_options.h"
#include "kernels/entry.h"
#include "kernels/linear_attention.h"
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
// group along k. The formats after them are the block types of GGUF files
// (kernels/layout/blocks.h).
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
  const uint16_t* scales = nullptr;  // integers: f16; blocks: see kernels/layout/blocks.h
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
  // Null, or a score for each head, [H] of the working type, of a key without a value that every
  // query sees: neither cap nor bias applies to it.
  In sinks = {};

  void show_arrays(DeviceOfCall& call) const { call.meet(bias), call.meet(sinks); }
  int64_t values() const { return value_width > 0 ? value_width : width; }  // width of a value

  int64_t bias_row(int64_t row_of_batch, int64_t head) const {
    return row_of_batch * bias_tables / batch * heads + head;
  }

  // The index, within the step, of this pass's first batch row; dropout counts rows from it.
  int64_t first_dropped_row() const { return dropout.first_unit * (batch / dropout.units); }
};

// What distance_terms computes: T queries and S keys of B H heads, and R vectors of distances.
struct DistanceTerms {
  int64_t heads = 0, queries = 0, keys = 0, vectors = 0;  // B H, T, S, R
  float scale = 1;

  // The index of a distance in the list of rows.
  int64_t distance(int64_t query, int64_t key) const { return query - key + keys - 1; }
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
  In sinks = {};  // as in AttentionShape

  void show_arrays(DeviceOfCall& call) const { call.meet(bias), call.meet(sinks); }
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
          .bias_tables = 1,
          .sinks = paged.sinks};
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

#ifndef __CUDACC__  // whose kernels do not use the table, and which cannot read it
// The functions of a device; entries.inc documents each.
struct Kernels {
  const char* device = "";

#define KERNEL(name, ...) Kernel<#name, __VA_ARGS__> name{device};
#include "kernels/entries.inc"
#undef KERNEL
};

// Naive loops in double: the specification. Supports f32, bf16 and f64.
const Kernels& reference_kernels();
const Kernels& cpu_kernels();  // vectors and tiles; f32 and bf16

// Returns the table in use for a dtype: f64 always uses the reference kernels; after
// use_isa("reference") or with FOVEA_ISA=reference, all dtypes do. use_kernels() sets the table of
// the other dtypes.
const Kernels& kernels_for(DType dtype);
void use_kernels(const Kernels* table);  // for tests; null = the default
#endif

}  // namespace fovea
