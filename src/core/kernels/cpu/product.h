#pragma once

// Shared by the kernels of matrix products: the operands, the division of k into blocks, and the
// division of the work among the threads.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/threads.h"
#include "kernels/layout/packed.h"

namespace fovea::cpu {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Returns the size of the blocks into which `size` is split: nearly equal multiples of `step`, at
// most `most` rounded up to such a multiple.
inline int64_t even_block(int64_t size, int64_t most, int64_t step) {
  return size == 0 ? step : round_up(ceil_div(size, ceil_div(size, most)), step);
}

// Returns part `index` of the `count` parts into which [0, size) is divided at multiples of `step`.
inline Range share_of(int64_t size, int64_t index, int64_t count, int64_t step) {
  const int64_t parts = ceil_div(size, step);
  return {std::min(size, parts * index / count * step),
          std::min(size, parts * (index + 1) / count * step)};
}

// An operand as it is stored: rows of `stride` elements.
struct Matrix {
  const void* data;
  DType dtype;
  int64_t stride;
  bool transposed;  // A: stored [k, m]; B: stored [n, k]
};

struct Product {
  Out c;
  Matrix a, b;
  In bias;
  int64_t m, n, k;
  Units units;
  bool bf16_pairs;  // whether both operands are bf16: all CPUs then process k in pairs
  // If set, B is this matrix, unpacked block by block to b.dtype.
  const PackedMatrix* packed = nullptr;
  // If set, the sums continue over this product, whose c is not used.
  const Product* second = nullptr;
  KeptOperand* kept = nullptr;  // see GemmShape

  Product(Out out, In in_a, In in_b, In in_bias, const GemmShape& s)
      : c(out),
        a{in_a.data, in_a.dtype, s.transpose_a ? s.m : s.k, s.transpose_a},
        b{in_b.data, in_b.dtype, s.transpose_b ? s.k : s.n, s.transpose_b},
        bias(in_bias),
        m(s.m),
        n(s.n),
        k(s.k),
        units(s.units),
        bf16_pairs(in_a.dtype == DType::bf16 && in_b.dtype == DType::bf16),
        kept(s.kept) {}
  Product(Out out, In in_a, const PackedMatrix& w, In in_bias, const GemmShape& s)
      : Product(out, in_a, In{nullptr, in_a.dtype}, in_bias, s) {
    packed = &w;
  }
};

// A range of k that lies within one unit, or of the k of Product::second.
struct Segment {
  Range k;
  int64_t unit;
  bool first, last;   // whether it begins or ends its unit
  int64_t next = -1;  // the next unit that has rows; -1 = none
  bool second = false;

  const Product& of(const Product& p) const { return second ? *p.second : p; }
};

// Divides k into blocks of at most `most` values, rounded up to a multiple of `step`. The segments
// of a block are complete units, or parts of a unit that begin at a multiple of `step` from its
// start. Returns at least one block with one segment, so that c is set even if k is 0. The values
// of k of p.second follow; if they are few, in the last block.
inline std::vector<std::vector<Segment>> blocks_of_k(const Product& p, int64_t most, int64_t step) {
  std::vector<std::vector<Segment>> blocks(1);
  int64_t held = 0;
  Segment* ended = nullptr;  // the last segment of the previous unit
  const auto append = [&](const Segment& segment) {
    if (segment.first && ended != nullptr) ended->next = segment.unit;
    if (held > 0 && held + segment.k.size() > most) blocks.emplace_back(), held = 0;
    blocks.back().push_back(segment);
    held += segment.k.size();
    ended = &blocks.back().back();
  };
  for (int64_t unit = 0; unit < p.units.count; ++unit) {
    const Range rows = {p.units.start(unit, p.k), p.units.start(unit + 1, p.k)};
    if (rows.size() == 0 && p.units.count > 1) continue;
    const int64_t piece = even_block(rows.size(), most, step);
    int64_t begin = rows.begin;
    do {
      const int64_t end = std::min(rows.end, begin + piece);
      append({{begin, end}, unit, begin == rows.begin, end == rows.end});
      begin = end;
    } while (begin < rows.end);
  }
  if (blocks.back().empty()) blocks.back().push_back({{0, 0}, 0, true, true});
  if (p.second == nullptr) return blocks;
  blocks.back().back().last = false;
  const bool few = p.second->k <= most / 6;  // else the last block would leave the cache
  for (const auto& block : blocks_of_k(*p.second, most, step)) {
    Segment segment = block.front();
    segment.first = false;
    segment.second = true;
    if (!few) blocks.emplace_back();
    blocks.back().push_back(segment);
  }
  return blocks;
}

// The numbers of shares into which the rows and the columns of c are divided.
struct ThreadGrid {
  int64_t rows, columns;
};

// Returns the grid of at most `count` shares with the least time(grid), the time of its largest
// share.
template <class Time>
ThreadGrid fastest_of(int64_t count, const Time& time) {
  ThreadGrid fastest = {1, 1};
  double least = INFINITY;
  for (int64_t rows = 1; rows <= count; ++rows) {
    const ThreadGrid grid = {rows, count / rows};
    if (const double t = time(grid); t < least) fastest = grid, least = t;
  }
  return fastest;
}

// Returns the fastest grid. There is at most one thread per `grain` multiply-adds. A thread has
// several shares if they are large (from kShareGrains on) and packing takes little more time, since
// threads are rarely equally fast: the faster ones take shares of the others.
template <class Time>
ThreadGrid fastest_grid(const Product& p, double grain, const Time& time) {
  constexpr double kMostCost = 1.02, kShareGrains = 64;
  const double products =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const auto threads =
      std::min<int64_t>(thread_count(), static_cast<int64_t>(products / grain) + 1);
  const ThreadGrid whole = fastest_of(threads, time);
  for (const int64_t shares : {4, 2}) {
    const bool large = products >= kShareGrains * grain * static_cast<double>(shares * threads);
    if (threads == 1 || !large) continue;
    const ThreadGrid grid = fastest_of(shares * threads, time);
    if (static_cast<double>(shares) * time(grid) <= kMostCost * time(whole)) return grid;
  }
  return whole;
}

}  // namespace fovea::cpu
