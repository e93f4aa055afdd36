#include "kernels/cpu/attention_tile.h"

#include <cstring>

namespace fovea::cpu {

void find_seen_keys(const QueryRows& queries, int64_t first_row, int64_t rows, SeenKeys* seen) {
  const AttentionShape& shape = queries.shape;
  for (int64_t row = 0; row < rows; ++row) {
    seen[row].count = shape.mask.intervals(queries.batch, queries.position(first_row + row),
                                           shape.keys, seen[row].intervals);
  }
}

Columns seen_columns(const SeenKeys* seen, int64_t rows, int64_t tile) {
  int64_t begin = kTile, end = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int i = 0; i < seen[row].count; ++i) {
      const int64_t from = std::max<int64_t>(seen[row].intervals[i].begin - tile, 0);
      const int64_t to = std::min(seen[row].intervals[i].end - tile, kTile);
      if (from >= to) continue;
      begin = std::min(begin, from);
      end = std::max(end, to);
    }
  }
  if (begin >= end) return {};
  Columns columns{begin / kLanes * kLanes, round_up(end, kLanes), true};
  for (int64_t row = 0; row < rows; ++row) {
    bool whole = false;
    for (int i = 0; i < seen[row].count; ++i) {
      const Interval& interval = seen[row].intervals[i];
      whole |= interval.begin <= tile + columns.begin && interval.end >= tile + columns.end;
    }
    columns.whole &= whole;
  }
  return columns;
}

void hide_unseen(float* scores, const SeenKeys* seen, int64_t rows, int64_t tile, Columns columns) {
  for (int64_t row = 0; row < rows; ++row, scores += kTile) {
    int64_t done = columns.begin;
    for (int i = 0; i < seen[row].count; ++i) {
      const Interval& interval = seen[row].intervals[i];
      const int64_t from = std::clamp(interval.begin - tile, done, columns.end);
      std::fill(scores + done, scores + from, kHidden);
      done = std::clamp(interval.end - tile, from, columns.end);
    }
    std::fill(scores + done, scores + columns.end, kHidden);
  }
}

void load_row(float* out, In x, int64_t offset, int64_t width, int64_t padded, float factor) {
  if (x.dtype == DType::bf16) {
    const bf16* from = static_cast<const bf16*>(x.data) + offset;
    for (int64_t d = 0; d < width; ++d) out[d] = widen(from[d]) * factor;
  } else {
    const float* from = static_cast<const float*>(x.data) + offset;
    for (int64_t d = 0; d < width; ++d) out[d] = from[d] * factor;
  }
  std::fill(out + width, out + padded, 0.0f);
}

void store_row(Out y, int64_t offset, const float* row, int64_t width, float factor) {
  if (y.data == nullptr) return;
  if (y.dtype == DType::bf16) {
    bf16* to = static_cast<bf16*>(y.data) + offset;
    for (int64_t d = 0; d < width; ++d) {
      const float value = row[d] * factor;
      to[d] = narrow(y.add ? widen(to[d]) + value : value);
    }
  } else {
    float* to = static_cast<float*>(y.data) + offset;
    for (int64_t d = 0; d < width; ++d) {
      const float value = row[d] * factor;
      to[d] = y.add ? to[d] + value : value;
    }
  }
}

void load_tile(float* out, In x, const QueryRows& queries, int64_t tile) {
  const int64_t width = queries.shape.width, padded = padded_width(queries.shape);
  const int64_t keys = std::min(kTile, queries.shape.keys - tile);
  for (int64_t key = 0; key < keys; ++key)
    load_row(out + key * padded, x, queries.key_offset(tile + key), width, padded, 1.0f);
  std::fill(out + keys * padded, out + kTile * padded, 0.0f);
}

float sum_of_lanes(const float* lanes) {
  float sums[kLanes];
  std::copy(lanes, lanes + kLanes, sums);
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

Scratch::Scratch(int64_t floats) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  thread_local int64_t capacity = 0;
  if (capacity < floats) {
    capacity = 0;
    memory.reset();
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(floats));
    if (memory == nullptr) throw std::bad_alloc();
    capacity = floats;
  }
  next_ = memory.get();
}

float* Scratch::take(int64_t floats) {
  float* piece = next_;
  next_ += size_of(floats);
  return piece;
}

}  // namespace fovea::cpu
