// Parts of linear attention that its forward and backward pass share; included once per target.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_LINEAR_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_LINEAR_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_LINEAR_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_LINEAR_INL_H_
#endif

#include "kernels/cpu/attention/simd-inl.h"
#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

// The decays of one head within a chunk. The sums are those from the chunk's first token to token
// t; `factors` are their exponentials.
struct ChunkDecays {
  alignas(64) float sums[kChunkTokens], factors[kChunkTokens];

  // Reads the sums of the first `tokens` tokens.
  ChunkDecays(const float* decays, const LinearAttention& shape, int64_t head, int64_t tokens) {
    for (int64_t t = 0; t < kChunkTokens; ++t)
      sums[t] = decays[std::min(t, tokens - 1) * shape.heads + head];
    map(factors, kChunkTokens, [](Vector x) HWY_ATTR { return exp_of(x); }, sums);
  }
  // to[s] = the decay from token s to token t, for 0 <= s <= t.
  HWY_INLINE void until(int64_t t, float* to) const {
    const Vector last = all(sums[t]);
    map(to, t + 1, [&](Vector x) HWY_ATTR { return exp_of(hn::Sub(last, x)); }, sums);
  }
};

// The arrays of one head in a chunk.
struct HeadOfChunk {
  float *state, *keys, *values, *decays;  // [D, P], [D, 64], [64, ...] and [64, ...]
  int64_t values_row;                     // from a token to the next one

  HeadOfChunk(const LinearChunk& chunk, const LinearAttention& shape, int64_t head)
      : state(static_cast<float*>(chunk.state.data) + head * shape.width * shape.padded_values()),
        keys(static_cast<float*>(chunk.keys.data) +
             shape.key_head(head) * shape.width * kChunkTokens),
        values(static_cast<float*>(chunk.values.data) + head * shape.padded_values()),
        decays(static_cast<float*>(chunk.decays.data)),
        values_row(shape.heads * shape.padded_values()) {}
};

// to [count, width] = rows of x [rows, heads, of_head], from one head of row `row` on, times
// `factor`; the columns from of_head on are 0.
HWY_INLINE void load_head(float* to, In x, int64_t row, int64_t heads, int64_t head,
                          int64_t of_head, int64_t count, int64_t width, float factor = 1) {
  for (int64_t i = 0; i < count; ++i)
    load_row(to + i * width, x, ((row + i) * heads + head) * of_head, of_head, width, factor);
}

// y[i] = factor * x[i], or y[i] += factor * x[i], for a multiple of kPanel numbers.
HWY_INLINE void scale_into(float* y, const float* x, float factor, int64_t count) {
  map(y, count, [&](Vector a) HWY_ATTR { return hn::Mul(all(factor), a); }, x);
}
HWY_INLINE void add_scaled(float* y, const float* x, float factor, int64_t count) {
  map(
      y, count, [&](Vector old, Vector a) HWY_ATTR { return hn::MulAdd(all(factor), a, old); }, y,
      x);
}

// Rows that add_earlier() computes together.
constexpr int64_t kRowsTogether = 8;

// Row i of c [count, P] += the sum over s < first + i, or s <= first + i if `own`, of weights[i, s]
// b[s]: a chain over ascending s, for any division of the rows. Row i of the weights [count, 64]
// belongs to token first + i of the chunk. Calls finish(i) after each row, so that row first + i of
// b may be written then.
template <class Finish>
HWY_INLINE void add_earlier(float* c, const float* weights, const float* b, int64_t b_row,
                            int64_t first, int64_t count, int64_t P, bool own,
                            const Finish& finish) {
  for (int64_t begin = 0; begin < count; begin += kRowsTogether) {
    const int64_t end = std::min(begin + kRowsTogether, count), done = first + begin;
    multiply({weights + begin * kChunkTokens, kChunkTokens, 1, b, b_row, c + begin * P, P,
              end - begin, P, done, true});
    for (int64_t i = begin; i < end; ++i) {
      multiply({weights + i * kChunkTokens + done, kChunkTokens, 1, b + done * b_row, b_row,
                c + i * P, P, 1, P, i - begin + own, true});
      finish(i);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#endif
