#include "kernels/cpu/attention/tile.h"

#include <hwy/base.h>

namespace fovea::cpu {

namespace {

constexpr int64_t kFarthest = std::numeric_limits<int64_t>::max();

Interval longer(Interval a, Interval b) { return a.end - a.begin >= b.end - b.begin ? a : b; }

}  // namespace

void Sight::merge(const Sight& other) {
  all_begin = std::max(all_begin, other.all_begin);
  all_end = std::min(all_end, other.all_end);
  if (other.empty()) return;
  if (empty()) {
    *this = {other.begin, other.end, all_begin, all_end, other.gap_begin, other.gap_end};
    return;
  }
  const bool touches = other.begin <= end && begin <= other.end;
  if (touches && gap_begin == gap_end && other.gap_begin == other.gap_end) {  // almost always
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
    return;
  }
  Interval gap;  // the longest inside [begin, end) that neither sees
  const Interval unseen[] = {{0, begin}, {gap_begin, gap_end}, {end, kFarthest}};
  const Interval others[] = {
      {0, other.begin}, {other.gap_begin, other.gap_end}, {other.end, kFarthest}};
  begin = std::min(begin, other.begin);
  end = std::max(end, other.end);
  for (const Interval& a : unseen)
    for (const Interval& b : others)
      gap = longer(gap, {std::max({a.begin, b.begin, begin}), std::min({a.end, b.end, end})});
  gap_begin = gap.begin;
  gap_end = gap.end;
}

Sight sight_of(const QueryRows& queries, int64_t first_row, int64_t rows) {
  Sight sight;
  const AttentionShape& shape = queries.shape;
  for (int64_t row = first_row; row < first_row + rows; ++row) {
    Interval seen[Mask::kMostIntervals];
    const int count = shape.mask.intervals(queries.batch, queries.position(row), shape.keys, seen);
    if (count == 0) {
      sight.all_end = 0;
    } else {
      const Interval& last = seen[count - 1];
      const Interval all = longer(last, seen[0]);
      const Interval gap = count > 1 ? Interval{seen[0].end, last.begin} : Interval{};
      sight.merge({seen[0].begin, last.end, all.begin, all.end, gap.begin, gap.end});
    }
  }
  return sight;
}

Columns seen_columns(const Sight& sight, int64_t tile, int64_t unit) {
  int64_t begin = std::max(sight.begin, tile), end = std::min(sight.end, tile + kTile);
  if (begin >= sight.gap_begin) begin = std::max(begin, sight.gap_end);
  if (end <= sight.gap_end) end = std::min(end, sight.gap_begin);
  if (begin >= end) return {};
  begin = (begin - tile) / unit * unit;
  end = round_up(end - tile, unit);
  return {begin, end, sight.all_begin <= tile + begin && sight.all_end >= tile + end};
}

void hide_unseen(float* scores, const QueryRows& queries, int64_t first_row, int64_t rows,
                 int64_t tile, Columns columns) {
  const AttentionShape& shape = queries.shape;
  for (int64_t row = first_row; row < first_row + rows; ++row, scores += kTile) {
    Interval seen[Mask::kMostIntervals];
    const int count = shape.mask.intervals(queries.batch, queries.position(row), shape.keys, seen);
    int64_t done = columns.begin;
    for (int i = 0; i < count; ++i) {
      const int64_t from = std::clamp(seen[i].begin - tile, done, columns.end);
      std::fill(scores + done, scores + from, kHidden);
      done = std::clamp(seen[i].end - tile, from, columns.end);
    }
    std::fill(scores + done, scores + columns.end, kHidden);
  }
}

void load_row(float* HWY_RESTRICT out, In x, int64_t offset, int64_t width, int64_t padded,
              float factor) {
  if (x.dtype == DType::bf16) {
    const bf16* HWY_RESTRICT from = static_cast<const bf16*>(x.data) + offset;
    for (int64_t d = 0; d < width; ++d) out[d] = widen(from[d]) * factor;
  } else {
    const float* HWY_RESTRICT from = static_cast<const float*>(x.data) + offset;
    for (int64_t d = 0; d < width; ++d) out[d] = from[d] * factor;
  }
  std::fill(out + width, out + padded, 0.0f);
}

void store_row(Out y, int64_t offset, const float* HWY_RESTRICT row, int64_t width, float factor) {
  if (y.data == nullptr) return;
  if (y.dtype == DType::bf16) {
    bf16* HWY_RESTRICT to = static_cast<bf16*>(y.data) + offset;
    for (int64_t d = 0; d < width; ++d) {
      const float value = row[d] * factor;
      to[d] = narrow(y.add ? widen(to[d]) + value : value);
    }
  } else {
    float* HWY_RESTRICT to = static_cast<float*>(y.data) + offset;
    for (int64_t d = 0; d < width; ++d) {
      const float value = row[d] * factor;
      to[d] = y.add ? to[d] + value : value;
    }
  }
}

void load_tile(float* out, const KeyRows& x, const QueryRows& queries, int64_t tile, int64_t rows) {
  const int64_t padded = x.padded();
  const int64_t keys = std::min(rows, queries.shape.keys - tile);
  for (int64_t key = 0; key < keys; ++key)
    load_row(out + key * padded, x.x, queries.key_offset(tile + key, x.width), x.width, padded,
             1.0f);
  std::fill(out + keys * padded, out + rows * padded, 0.0f);
}

TileRows rows_of_tile(float* copy, const KeyRows& x, const QueryRows& queries, int64_t tile) {
  const AttentionShape& shape = queries.shape;
  if (x.x.dtype == DType::f32 && x.width % kPanel == 0) {
    return {static_cast<const float*>(x.x.data) + queries.key_offset(tile, x.width),
            shape.kv_heads * x.width, std::min(kTile, shape.keys - tile)};
  }
  load_tile(copy, x, queries, tile);
  return {copy, x.padded(), kTile};
}

TileRows whole_tile(float* copy, const KeyRows& x, const QueryRows& queries, int64_t tile) {
  if (tile + kTile <= queries.shape.keys) return rows_of_tile(copy, x, queries, tile);
  load_tile(copy, x, queries, tile);
  return {copy, x.padded(), kTile};
}

void prefetch_keys(const KeyRows& x, const QueryRows& queries, Interval keys) {
  constexpr int64_t kCacheLine = 64;
  const int64_t element = static_cast<int64_t>(size_of(x.x.dtype));
  const int64_t end = std::min(keys.end, queries.shape.keys);
  for (int64_t key = keys.begin; key < end; ++key) {
    const char* row =
        static_cast<const char*>(x.x.data) + queries.key_offset(key, x.width) * element;
    for (int64_t byte = 0; byte < x.width * element; byte += kCacheLine)
      __builtin_prefetch(row + byte, 0, 2);  // for reading, into L2
  }
}

}  // namespace fovea::cpu
