// Computes the attention weights for inspection: one strip of queries and all keys at a time. Also
// computes the terms of the gradients of sinks.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/weights.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/simd-inl.h"
// clang-format on

#include <algorithm>
#include <numbers>
#include <optional>

#include "kernels/cpu/cpu.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Strip {
  QueryRows queries;
  int64_t first_row, rows;
  int64_t padded, stride;
  float* q;        // [kStrip, padded], times scale / ln 2
  float* k;        // [padded, kTile]
  float* copy;     // [kTile, padded], a copy of k's rows if one is needed
  float* scores;   // [kStrip, kTile], in units of ln 2: the weights are 2^score
  float* weights;  // [kStrip, stride]; first holds the scores
};

void score_tile(const Strip& strip, In k, const Sight& sight, int64_t tile) {
  const Columns columns = seen_columns(sight, tile);
  if (columns.empty()) return;
  const AttentionShape& shape = strip.queries.shape;
  transpose_rows(whole_tile(strip.copy, {k, shape.width}, strip.queries, tile), kTile, strip.padded,
                 strip.k);
  multiply({strip.q, strip.padded, 1, strip.k + columns.begin, kTile, strip.scores + columns.begin,
            kTile, strip.rows, columns.end - columns.begin, shape.width, false});
  bend_scores(strip.scores, strip.queries, strip.first_row, strip.rows, tile, columns, nullptr);
  if (!columns.whole)
    hide_unseen(strip.scores, strip.queries, strip.first_row, strip.rows, tile, columns);
  for (int64_t row = 0; row < strip.rows; ++row) {
    const float* scores = strip.scores + row * kTile;
    std::copy(scores + columns.begin, scores + columns.end,
              strip.weights + row * strip.stride + tile + columns.begin);
  }
}

// Turns a row's scores into weights relative to the largest, and returns their sum, with that of
// the sink, which may be null.
HWY_INLINE float exponentiate(float* HWY_RESTRICT row, int64_t stride, const Sink* sink) {
  const Floats tag;
  float largest = *std::max_element(row, row + stride);
  if (sink != nullptr) largest = std::max(largest, sink->score);
  const Vector shift = hn::Set(tag, largest == kHidden ? 0.0f : largest);
  HWY_ALIGN float sums[kPanel];
  for (int64_t lane = 0; lane < kPanel; lane += kLanes) {
    Vector sum = hn::Zero(tag);
    for (int64_t i = lane; i < stride; i += kPanel) {
      const Vector weight = exp2(hn::Sub(hn::Load(tag, row + i), shift));
      sum = hn::Add(sum, weight);
      hn::Store(weight, tag, row + i);
    }
    hn::Store(sum, tag, sums + lane);
  }
  const float sum = sum_of_lanes(sums);
  return sink == nullptr ? sum : sum + sink->weight(largest);
}

void weigh_strip(Out w, In q, In k, const Strip& strip) {
  const AttentionShape& shape = strip.queries.shape;
  const float factor = static_cast<float>(shape.scale * std::numbers::log2e);
  for (int64_t row = 0; row < strip.rows; ++row)
    load_row(strip.q + row * strip.padded, q,
             strip.queries.offset(strip.first_row + row, shape.width), shape.width, strip.padded,
             factor);
  std::fill(strip.weights, strip.weights + strip.rows * strip.stride, kHidden);
  const Sight sight = sight_of(strip.queries, strip.first_row, strip.rows);
  for (int64_t tile = sight.begin / kTile * kTile; tile < sight.end; tile += kTile)
    score_tile(strip, k, sight, tile);
  for (int64_t row = 0; row < strip.rows; ++row) {
    float* weights = strip.weights + row * strip.stride;
    std::optional<Sink> sink;
    if (shape.sinks.data != nullptr) sink.emplace(shape, strip.queries.head(strip.first_row + row));
    const float sum = exponentiate(weights, strip.stride, sink ? &*sink : nullptr);
    store_row(w, strip.queries.index(strip.first_row + row) * shape.keys, weights, shape.keys,
              sum == 0 ? 0.0f : 1.0f / sum);
  }
}

void weigh(Out w, In q, In k, const QueryRows& queries) {
  const int64_t padded = cpu::padded(queries.shape.width),
                stride = round_up(queries.shape.keys, kTile);
  Scratch scratch(kStrip * (padded + kTile + stride) + 2 * kTile * padded);
  Strip strip{queries,
              0,
              0,
              padded,
              stride,
              scratch.take(kStrip * padded),
              scratch.take(kTile * padded),
              scratch.take(kTile * padded),
              scratch.take(kStrip * kTile),
              scratch.take(kStrip * stride)};
  for (; strip.first_row < queries.rows(); strip.first_row += kStrip) {
    strip.rows = std::min(kStrip, queries.rows() - strip.first_row);
    weigh_strip(w, q, k, strip);
  }
}

void attention_weights_of(Out w, In q, In k, const AttentionShape& shape) {
  const int64_t group = shape.heads / shape.kv_heads, block = std::max<int64_t>(1, kStrip / group);
  const int64_t blocks = (shape.queries + block - 1) / block;
  share_out(work_of(shape), shape.batch * shape.kv_heads * blocks, [&](int64_t task) {
    const int64_t begin = task % blocks * block, head = task / blocks;
    weigh(w, q, k,
          {shape, head / shape.kv_heads, head % shape.kv_heads, begin,
           std::min(block, shape.queries - begin)});
  });
}

void sink_terms_of(Out terms, In dy, In y, In lse, const AttentionShape& shape) {
  const int64_t width = shape.values(), wide = padded(width);
  share_out(shape.batch * shape.queries * shape.heads * width, shape.batch * shape.queries,
            [&](int64_t token) {
              Scratch scratch(2 * wide);
              float *const left = scratch.take(wide), *const right = scratch.take(wide);
              for (int64_t head = 0; head < shape.heads; ++head) {
                const int64_t row = token * shape.heads + head;
                load_row(left, dy, row * width, width, wide, 1);
                load_row(right, y, row * width, width, wide, 1);
                const int64_t index = (token / shape.queries * shape.heads + head) * shape.queries +
                                      token % shape.queries;
                const float log = static_cast<const float*>(lse.data)[index];
                const float share = Sink(shape, head).weight(log * std::numbers::log2e_v<float>);
                const float term = -share * dot(left, right, wide);
                store_row(terms, row, &term, 1, 1);
              }
            });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(attention_weights_of);
HWY_EXPORT(sink_terms_of);

void attention_weights(Out w, In q, In k, const AttentionShape& shape) {
  HWY_DYNAMIC_DISPATCH(attention_weights_of)(w, q, k, shape);
}

void attention_sink_terms(Out terms, In dy, In y, In lse, const AttentionShape& shape) {
  HWY_DYNAMIC_DISPATCH(sink_terms_of)(terms, dy, y, lse, shape);
}

}  // namespace fovea::cpu
#endif
