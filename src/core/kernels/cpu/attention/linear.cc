// Linear attention in chunks: the rows of a chunk read the state before it by a product, and each
// other by products with the decays between them. One task computes a head of a text.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/linear.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/linear-inl.h"
// clang-format on

#include <vector>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/stored.h"

#ifndef FOVEA_KERNELS_CPU_ATTENTION_LINEAR_CC_
#define FOVEA_KERNELS_CPU_ATTENTION_LINEAR_CC_
namespace fovea::cpu {

struct LinearCall {
  Out y;
  In q, k, v, beta, decay;
  const LinearAttention& shape;

  float gate(In x, int64_t row, int64_t head) const {
    return static_cast<const float*>(x.data)[row * shape.heads + head];
  }
};

}  // namespace fovea::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

// Copies the keys of a piece to its chunk.
void put_keys(const LinearCall& call, const LinearText& text, const LinearPiece& piece,
              int64_t key_head) {
  const int64_t D = call.shape.width;
  float* const to = static_cast<float*>(text.chunks[piece.chunk].keys.data) +
                    key_head * D * kChunkTokens + piece.begin;
  std::vector<float> copy(static_cast<size_t>(D));
  for (int64_t i = 0; i < piece.count; ++i) {
    const float* const key =
        widened(call.k, ((piece.row + i) * call.shape.key_heads + key_head) * D, D, copy.data());
    for (int64_t d = 0; d < D; ++d) to[d * kChunkTokens + i] = key[d];
  }
}

// The memory of a task, for one head of a piece.
struct LinearScratch {
  float *queries, *y, *u, *weights, *state, *row;  // [64, D], 2 [64, P], [64, 64], [D, P], [P]

  explicit LinearScratch(const LinearAttention& shape) {
    const int64_t D = shape.width, P = shape.padded_values(), T = kChunkTokens;
    Scratch memory(Scratch::size_of(T * D) + 2 * T * P + T * T + D * P + P);
    queries = memory.take(T * D);
    y = memory.take(T * P), u = memory.take(T * P);
    weights = memory.take(T * T);
    state = memory.take(D * P);
    row = memory.take(P);
  }
};

// Rows x_t of a product: x_t[d] = data[t * row + d * inner].
struct RowsOfChunk {
  const float* data;
  int64_t row, inner;
};

// Writes the state of a head after a whole chunk: b S + the sum over its tokens of b_s k_s u_s^T,
// where b is the decay until the chunk's end.
void end_chunk(float* to, const HeadOfChunk& chunk, const LinearAttention& shape, int64_t head,
               const LinearScratch& scratch) {
  const int64_t D = shape.width, P = shape.padded_values();
  const ChunkDecays decays(chunk.decays, shape, head, kChunkTokens);
  alignas(64) float until_end[kChunkTokens];
  decays.until(kChunkTokens - 1, until_end);
  scale_into(scratch.state, chunk.state, decays.factors[kChunkTokens - 1], D * P);
  float* const keys = scratch.queries;  // [D, 64], decayed
  for (int64_t d = 0; d < D; ++d)
    map(
        keys + d * kChunkTokens, kChunkTokens,
        [](Vector k, Vector b) HWY_ATTR { return hn::Mul(k, b); }, chunk.keys + d * kChunkTokens,
        until_end);
  multiply({keys, kChunkTokens, 1, chunk.values, chunk.values_row, scratch.state, P, D, P,
            kChunkTokens, true});
  std::copy_n(scratch.state, D * P, to);
}

// Writes the state before a piece, if it begins its chunk, and the sums of its decays.
void begin_piece(const LinearCall& call, const LinearText& text, const LinearPiece& piece,
                 int64_t head, const HeadOfChunk& chunk, const LinearScratch& scratch) {
  const LinearAttention& shape = call.shape;
  const int64_t first = piece.begin;
  if (first == 0 && piece.chunk == 0)
    std::fill_n(chunk.state, shape.width * shape.padded_values(), 0.0f);
  else if (first == 0)
    end_chunk(chunk.state, {text.chunks[piece.chunk - 1], shape, head}, shape, head, scratch);
  float sum = first > 0 ? chunk.decays[(first - 1) * shape.heads + head] : 0;
  for (int64_t i = 0; i < piece.count; ++i)
    chunk.decays[(first + i) * shape.heads + head] = sum +=
        call.gate(call.decay, piece.row + i, head);
}

void attend_piece(const LinearCall& call, const LinearText& text, const LinearPiece& piece,
                  int64_t head, const LinearScratch& scratch) {
  const LinearAttention& shape = call.shape;
  const int64_t D = shape.width, V = shape.value_width, P = shape.padded_values();
  const int64_t first = piece.begin, count = piece.count, end = first + count;
  const HeadOfChunk chunk(text.chunks[piece.chunk], shape, head);
  begin_piece(call, text, piece, head, chunk, scratch);
  const ChunkDecays decays(chunk.decays, shape, head, end);
  // products [count, P] = sign b_t S^T x_t, and weights [count, 64] = sign b_ts (x_t . k_s) for s
  // <= t, of rows x.
  const auto read_chunk = [&](float* products, float* weights, const RowsOfChunk& x,
                              float sign) HWY_ATTR {
    multiply({x.data, x.row, x.inner, chunk.state, P, products, P, count, P, D, false});
    multiply({x.data, x.row, x.inner, chunk.keys, kChunkTokens, weights, kChunkTokens, count,
              round_up(end, kPanel), D, false});
    alignas(64) float between[kChunkTokens];
    for (int64_t i = 0; i < count; ++i) {
      decays.until(first + i, between);
      scale_into(products + i * P, products + i * P, sign * decays.factors[first + i], P);
      map(
          weights + i * kChunkTokens, first + i + 1,
          [&](Vector w, Vector b) HWY_ATTR { return hn::Mul(w, hn::Mul(all(sign), b)); },
          weights + i * kChunkTokens, between);
    }
  };

  const float* const keys = chunk.keys + first;  // of the piece, transposed
  load_head(scratch.queries, call.q, piece.row, shape.key_heads, shape.key_head(head), D, count, D,
            shape.scale);

  // u = beta (v - b S^T k - the sum over s < t of b_ts (k_t . k_s) u_s)
  if (shape.delta) read_chunk(scratch.u, scratch.weights, {keys, 1, kChunkTokens}, -1);
  const auto keep = [&](int64_t i) HWY_ATTR {
    scale_into(chunk.values + (first + i) * chunk.values_row, scratch.u + i * P,
               call.gate(call.beta, piece.row + i, head), P);
  };
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = ((piece.row + i) * shape.heads + head) * V;
    float* const u = scratch.u + i * P;
    load_row(shape.delta ? scratch.row : u, call.v, value, V, P, 1);
    if (shape.delta)
      add_scaled(u, scratch.row, 1, P);
    else
      keep(i);
  }
  if (shape.delta)
    add_earlier(scratch.u, scratch.weights, chunk.values, chunk.values_row, first, count, P, false,
                keep);

  // y = b S^T q + the sum over s <= t of b_ts (q_t . k_s) u_s
  read_chunk(scratch.y, scratch.weights, {scratch.queries, D, 1}, 1);
  add_earlier(scratch.y, scratch.weights, chunk.values, chunk.values_row, first, count, P, true,
              [](int64_t) {});
  for (int64_t i = 0; i < count; ++i)
    store_row(call.y, ((piece.row + i) * shape.heads + head) * V, scratch.y + i * P, V, 1);
}

void attend_texts(const LinearCall& call, std::span<const LinearText> texts) {
  const LinearAttention& shape = call.shape;
  struct Piece {
    const LinearText* text;
    LinearPiece piece;
  };
  std::vector<Piece> pieces;
  int64_t rows = 0;
  for (const LinearText& text : texts) {
    each_piece(text, [&](const LinearPiece& piece) { pieces.push_back({&text, piece}); });
    rows += text.tokens;
  }
  const int64_t copied = rows * shape.key_heads * shape.width;
  share_out(copied, std::ssize(pieces) * shape.key_heads, [&](int64_t task) {
    const auto& [text, piece] = pieces[static_cast<size_t>(task / shape.key_heads)];
    put_keys(call, *text, piece, task % shape.key_heads);
  });
  const int64_t work = 4 * rows * shape.heads * shape.width * shape.padded_values();
  share_out(work, std::ssize(texts) * shape.heads, [&](int64_t task) {
    const LinearText& text = texts[static_cast<size_t>(task / shape.heads)];
    const LinearScratch scratch(shape);
    each_piece(text, [&](const LinearPiece& piece) {
      attend_piece(call, text, piece, task % shape.heads, scratch);
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(attend_texts);

void linear_attention(Out y, In q, In k, In v, In beta, In decay, std::span<const LinearText> texts,
                      const LinearAttention& shape) {
  check_stored_types(y, q, k, v);
  HWY_DYNAMIC_DISPATCH(attend_texts)({y, q, k, v, beta, decay, shape}, texts);
}

}  // namespace fovea::cpu
#endif
