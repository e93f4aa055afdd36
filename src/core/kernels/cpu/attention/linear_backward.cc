// The gradients of linear attention, chunk by chunk from a text's end, which recompute the weights
// of a chunk. With b_t the decay from the chunk's begin to token t, b_ts that from token s to t,
// b_s' that from s to the chunk's end, and
//   N[t, s] = b_ts (q_t . k_s) for s <= t,   M[t, s] = -b_ts (k_t . k_s) for s < t,
//   r_t = v_t - b_t S^T k_t + sum of M[t, s] u_s,   u = beta r,   y_t = b_t S^T q_t + sum of N[t,
//   s] u_s, S' = b_L S + sum of b_s' k_s u_s^T
// the gradients are, with x = dr,
//   du_s = sum of N[t, s] dy_t + b_s' dS'^T k_s + sum of M[t, s] x_t,   x = beta du,
//   dN[t, s] = dy_t . u_s,   dM[t, s] = x_t . u_s,
//   dS = b_L dS' + sum of b_t (q_t dy_t^T - k_t x_t^T).
// One task computes a key head of a text.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/linear_backward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/linear-inl.h"
// clang-format on

#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/stored.h"

#ifndef FOVEA_KERNELS_CPU_ATTENTION_LINEAR_BACKWARD_CC_
#define FOVEA_KERNELS_CPU_ATTENTION_LINEAR_BACKWARD_CC_
namespace fovea::cpu {

struct LinearBackwardCall {
  const LinearGradients& d;
  In dy, q, v, beta;
  const LinearAttention& shape;
};

}  // namespace fovea::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kT = kChunkTokens;

// The memory of a task. D is the padded width of a key here.
struct LinearBackwardScratch {
  float *q, *k, *dq, *dk, *rows;            // [64, D]
  float *dy, *x, *r, *of_q, *of_k;          // [64, P]: dy, x, r, S^T q, S^T k
  float *n, *m, *dn, *dm;                   // [64, 64]
  float* values;                            // [P, 64]: u, transposed
  float* keys;                              // [D, 64]
  float *state, *turned, *turned_gradient;  // [D, P]: S; [P, D]: S and dS', transposed
  float* gradients;                         // [heads of the group, D, P]: dS'

  explicit LinearBackwardScratch(const LinearAttention& shape) {
    const int64_t D = padded(shape.width), P = shape.padded_values();
    Scratch memory(6 * kT * D + 6 * kT * P + 4 * kT * kT + (3 + shape.group()) * D * P);
    for (float** part : {&q, &k, &dq, &dk, &rows, &keys}) *part = memory.take(kT * D);
    for (float** part : {&dy, &x, &r, &of_q, &of_k, &values}) *part = memory.take(kT * P);
    for (float** part : {&n, &m, &dn, &dm}) *part = memory.take(kT * kT);
    for (float** part : {&state, &turned, &turned_gradient}) *part = memory.take(D * P);
    gradients = memory.take(shape.group() * D * P);
  }
};

// One head of a chunk.
struct ChunkGradients {
  const LinearBackwardCall& call;
  const LinearBackwardScratch& at;
  const HeadOfChunk& chunk;
  LinearPiece piece;
  int64_t head, D, P;  // D and P padded
  ChunkDecays decays;
  float* ds;  // dS' [D, P], replaced by dS
  float until_end[kT];
  float of_sums[kT];  // the gradients of the sums of decays

  int64_t tokens() const { return piece.count; }
  int64_t columns() const { return round_up(tokens(), kPanel); }
  float beta(int64_t t) const {
    return static_cast<const float*>(call.beta.data)[(piece.row + t) * call.shape.heads + head];
  }
  // c [tokens, columns of b] (+)= the product of rows a [tokens, inner] with b [inner, columns].
  void rows_by(float* c, int64_t c_row, const float* a, int64_t a_row, const float* b,
               int64_t b_row, int64_t columns, int64_t inner, bool add) const {
    multiply({a, a_row, 1, b, b_row, c, c_row, tokens(), columns, inner, add});
  }
  // c (+)= w^T b for weights w [tokens, 64] and rows b [tokens, width]
  void turned_by(float* c, const float* w, const float* b, int64_t width, bool add) const {
    multiply({w, 1, kT, b, width, c, width, tokens(), width, tokens(), add});
  }

  // weights[t, s] = sign b_ts (x_t . k_s) for s <= t, or s < t; else 0.
  void weigh(float* weights, const float* x, float sign, bool own) const {
    rows_by(weights, kT, x, D, at.keys, kT, columns(), call.shape.width, false);
    mask(weights, sign, own);
  }
  // Multiplies weights[t, s] by sign b_ts for s <= t, or s < t; the others become 0.
  void mask(float* weights, float sign, bool own) const {
    alignas(64) float between[kT];
    for (int64_t t = 0; t < tokens(); ++t) {
      decays.until(t, between);
      float* const row = weights + t * kT;
      map(
          row, t + own,
          [&](Vector w, Vector b) HWY_ATTR { return hn::Mul(w, hn::Mul(all(sign), b)); }, row,
          between);
      std::fill(row + t + own, row + kT, 0.0f);
    }
  }

  void prepare();
  void values_and_beta();
  void queries_and_keys();
  void sums_and_state();
  void run() {
    prepare();
    values_and_beta();
    queries_and_keys();
    sums_and_state();
  }
};

void ChunkGradients::prepare() {
  const LinearAttention& shape = call.shape;
  decays.until(tokens() - 1, until_end);
  load_head(at.dy, call.dy, piece.row, shape.heads, head, shape.value_width, tokens(), P);
  std::copy_n(chunk.state, shape.width * P, at.state);
  std::fill(at.state + shape.width * P, at.state + D * P, 0.0f);
  transpose_rows({at.state, P, D}, D, P, at.turned, D);
  transpose_rows({ds, P, D}, D, P, at.turned_gradient, D);
  for (int64_t t = 0; t < columns(); ++t)  // r is not needed yet
    if (t < tokens())
      std::copy_n(chunk.values + t * chunk.values_row, P, at.r + t * P);
    else
      std::fill_n(at.r + t * P, P, 0.0f);
  transpose_rows({at.r, P, columns()}, columns(), P, at.values);
  rows_by(at.of_q, P, at.q, D, at.state, P, P, D, false);
  rows_by(at.of_k, P, at.k, D, at.state, P, P, D, false);
  weigh(at.n, at.q, 1, true);
  if (shape.delta) weigh(at.m, at.k, -1, false);
}

// x, and the gradients of v and beta.
void ChunkGradients::values_and_beta() {
  const LinearAttention& shape = call.shape;
  const int64_t V = shape.value_width;
  rows_by(at.x, P, at.k, D, ds, P, P, D, false);
  for (int64_t t = 0; t < tokens(); ++t) {
    scale_into(at.x + t * P, at.x + t * P, until_end[t], P);
    load_row(at.r + t * P, call.v, ((piece.row + t) * shape.heads + head) * V, V, P, 1);
    if (shape.delta) add_scaled(at.r + t * P, at.of_k + t * P, -decays.factors[t], P);
  }
  turned_by(at.x, at.n, at.dy, P, true);
  if (shape.delta)
    multiply({at.m, kT, 1, chunk.values, chunk.values_row, at.r, P, tokens(), P, tokens(), true});
  // x_t needs those of later tokens.
  for (int64_t end = tokens(); end > 0;) {
    const int64_t begin = (end - 1) / kRowsTogether * kRowsTogether;
    if (shape.delta)
      multiply({at.m + end * kT + begin, 1, kT, at.x + end * P, P, at.x + begin * P, P, end - begin,
                P, tokens() - end, true});
    for (int64_t t = end - 1; t >= begin; --t) {
      float* const x = at.x + t * P;
      if (shape.delta)
        multiply({at.m + (t + 1) * kT + t, 1, kT, x + P, P, x, P, 1, P, end - t - 1, true});
      const float dbeta = dot(x, at.r + t * P, P);
      scale_into(x, x, beta(t), P);
      store_row(call.d.dbeta, (piece.row + t) * shape.heads + head, &dbeta, 1, 1);
      store_row(call.d.dv, ((piece.row + t) * shape.heads + head) * V, x, V, 1);
    }
    end = begin;
  }
}

// Adds to dq and dk, and sets the gradients of the sums of decays that the weights give.
void ChunkGradients::queries_and_keys() {
  const bool delta = call.shape.delta;
  rows_by(at.dn, kT, at.dy, P, at.values, kT, columns(), P, false);
  if (delta) rows_by(at.dm, kT, at.x, P, at.values, kT, columns(), P, false);
  std::fill_n(of_sums, kT, 0.0f);
  for (int64_t t = 0; t < tokens(); ++t) {
    float sum = 0;
    for (int64_t s = 0; s < t; ++s) {  // the decay of a token to itself is 1
      float product = at.dn[t * kT + s] * at.n[t * kT + s];
      if (delta) product += at.dm[t * kT + s] * at.m[t * kT + s];
      of_sums[s] -= product;
      sum += product;
    }
    of_sums[t] += sum;
    float past = dot(at.dy + t * P, at.of_q + t * P, P);
    if (delta) past -= dot(at.x + t * P, at.of_k + t * P, P);
    of_sums[t] += decays.factors[t] * past;
  }
  mask(at.dn, 1, true);  // now the gradients of q_t . k_s
  rows_by(at.dq, D, at.dn, kT, at.k, D, D, tokens(), true);
  turned_by(at.dk, at.dn, at.q, D, true);
  rows_by(at.rows, D, at.dy, P, at.turned, D, D, P, false);
  for (int64_t t = 0; t < tokens(); ++t)
    add_scaled(at.dq + t * D, at.rows + t * D, decays.factors[t], D);
  if (delta) {
    mask(at.dm, -1, false);
    rows_by(at.dk, D, at.dm, kT, at.k, D, D, tokens(), true);
    turned_by(at.dk, at.dm, at.k, D, true);
    rows_by(at.rows, D, at.x, P, at.turned, D, D, P, false);
    for (int64_t t = 0; t < tokens(); ++t)
      add_scaled(at.dk + t * D, at.rows + t * D, -decays.factors[t], D);
  }
  rows_by(at.rows, D, chunk.values, chunk.values_row, at.turned_gradient, D, D, P, false);
  float end = 0;
  for (int64_t t = 0; t < tokens(); ++t) {
    add_scaled(at.dk + t * D, at.rows + t * D, until_end[t], D);
    const float product = until_end[t] * dot(at.k + t * D, at.rows + t * D, D);
    of_sums[t] -= product;
    end += product;
  }
  of_sums[tokens() - 1] += end;
}

// The gradients of the decays, and dS.
void ChunkGradients::sums_and_state() {
  const LinearAttention& shape = call.shape;
  const int64_t last = tokens() - 1;
  of_sums[last] += decays.factors[last] * dot(ds, at.state, D * P);
  float sum = 0;
  for (int64_t t = last; t >= 0; --t) {
    sum += of_sums[t];
    store_row(call.d.ddecay, (piece.row + t) * shape.heads + head, &sum, 1, 1);
  }
  scale_into(ds, ds, decays.factors[last], D * P);
  const auto add_outer = [&](const float* rows, const float* values, float sign) HWY_ATTR {
    for (int64_t t = 0; t < tokens(); ++t)
      scale_into(at.rows + t * D, rows + t * D, sign * decays.factors[t], D);
    multiply({at.rows, 1, D, values, P, ds, P, D, P, tokens(), true});
  };
  add_outer(at.q, at.dy, 1);
  if (shape.delta) add_outer(at.k, at.x, -1);
}

void text_backward(const LinearBackwardCall& call, const LinearText& text, int64_t key_head) {
  const LinearAttention& shape = call.shape;
  const LinearBackwardScratch at(shape);
  const int64_t width = shape.width, D = padded(width), P = shape.padded_values();
  const int64_t group = shape.group();
  std::fill_n(at.gradients, group * D * P, 0.0f);
  std::vector<LinearPiece> pieces;
  each_piece(text, [&](const LinearPiece& piece) { pieces.push_back(piece); });
  for (size_t i = pieces.size(); i-- > 0;) {
    const LinearPiece& piece = pieces[i];
    const LinearChunk& chunk = text.chunks[piece.chunk];
    load_head(at.q, call.q, piece.row, shape.key_heads, key_head, width, piece.count, D,
              shape.scale);
    std::copy_n(HeadOfChunk(chunk, shape, shape.head_of(key_head, 0)).keys, width * kT, at.keys);
    std::fill(at.keys + width * kT, at.keys + D * kT, 0.0f);
    transpose_rows({at.keys, kT, D}, D, kT, at.k, D);
    std::fill_n(at.dq, piece.count * D, 0.0f);
    std::fill_n(at.dk, piece.count * D, 0.0f);
    for (int64_t of_group = 0; of_group < group; ++of_group) {
      const int64_t head = shape.head_of(key_head, of_group);
      const HeadOfChunk of_head(chunk, shape, head);
      ChunkGradients{call,
                     at,
                     of_head,
                     piece,
                     head,
                     D,
                     P,
                     ChunkDecays(of_head.decays, shape, head, piece.count),
                     at.gradients + of_group * D * P,
                     {},
                     {}}
          .run();
    }
    for (int64_t t = 0; t < piece.count; ++t) {
      const int64_t to = ((piece.row + t) * shape.key_heads + key_head) * width;
      store_row(call.d.dq, to, at.dq + t * D, width, shape.scale);
      store_row(call.d.dk, to, at.dk + t * D, width, 1);
    }
  }
}

void texts_backward(const LinearBackwardCall& call, std::span<const LinearText> texts) {
  const LinearAttention& shape = call.shape;
  int64_t rows = 0;
  for (const LinearText& text : texts) rows += text.tokens;
  const int64_t work = 12 * rows * shape.heads * shape.width * shape.padded_values();
  share_out(work, std::ssize(texts) * shape.key_heads, [&](int64_t task) {
    text_backward(call, texts[static_cast<size_t>(task / shape.key_heads)], task % shape.key_heads);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(texts_backward);

void linear_attention_backward(const LinearGradients& d, In dy, In q, In v, In beta,
                               std::span<const LinearText> texts, const LinearAttention& shape) {
  check_stored_types(dy, q, v);
  HWY_DYNAMIC_DISPATCH(texts_backward)({d, dy, q, v, beta, shape}, texts);
}

}  // namespace fovea::cpu
#endif
