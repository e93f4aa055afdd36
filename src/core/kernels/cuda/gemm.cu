// Products in which each element is one chain of fused multiply-adds over ascending k.

#include "kernels/cuda/tile.cuh"
#include "kernels/sum_tree.h"

namespace fovea::cuda {

namespace {

// An operand of a product: element (i, l), where l counts along k.
struct Operand {
  In x;
  int64_t count, k;  // of i and l
  bool k_first;      // stored as [k, count], else [count, k]

  DEVICE float at(int64_t i, int64_t l) const {
    return get(x, k_first ? l * count + i : i * k + l);
  }
};

// Stores the elements [first, first + kTile) x [l, l + kDepth) of an operand; zeros outside it.
DEVICE void load(Depths& tile, const Operand& x, int64_t first, int64_t l, int64_t end) {
  for (int e = thread(); e < kDepth * kTile; e += threads()) {
    // Neighbouring threads read neighbouring elements.
    const int i = x.k_first ? e % kTile : e / kDepth, depth = x.k_first ? e / kTile : e % kDepth;
    const bool inside = first + i < x.count && l + depth < end;
    tile[depth][i] = inside ? x.at(first + i, l + depth) : 0;
  }
}

// Continues the sums over l from begin to end.
DEVICE void add_products(Sums& sums, Tiles& tiles, const Operand& a, const Operand& b,
                         int64_t begin, int64_t end) {
  for (int64_t l = begin; l < end; l += kDepth) {
    load(tiles.a, a, static_cast<int64_t>(block_y()) * kTile, l, end);
    load(tiles.b, b, static_cast<int64_t>(block_x()) * kTile, l, end);
    barrier();
    add_depths(sums, tiles.a, tiles.b, static_cast<int>(end - l < kDepth ? end - l : kDepth));
    barrier();
  }
}

DEVICE void store(Out c, In bias, const Sums& sums, int64_t m, int64_t n) {
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    const int64_t row = static_cast<int64_t>(block_y()) * kTile + own_row() + kSide * i;
    const int64_t column = static_cast<int64_t>(block_x()) * kTile + own_column() + kSide * j;
    if (row >= m || column >= n) continue;
    const float added = bias.data != nullptr ? sums.of[i][j] + get(bias, column) : sums.of[i][j];
    put(c, row * n + column, added);
  }
}

}  // namespace

KERNEL(gemm_chains)(Out c, In a, In b, In bias, GemmOperands o) {
  SHARED(Tiles, tiles);
  Sums sums;
  add_products(sums, tiles, {a, o.m, o.k, o.transpose_a}, {b, o.n, o.k, !o.transpose_b}, 0, o.k);
  if (o.second_k > 0)
    add_products(sums, tiles, {o.second_a, o.m, o.second_k, false},
                 {o.second_b, o.n, o.second_k, !o.transpose_b}, 0, o.second_k);
  store(c, bias, sums, o.m, o.n);
}

KERNEL(gemm_units)
(Out c, In a, In b, GemmOperands o, const int64_t* starts, int64_t units) {
  SHARED(Tiles, tiles);
  Sums held[SumTree::slots(1 << 20)];
  const auto merge = [&](int slot) {
    for (int i = 0; i < kOwn; ++i)
      for (int j = 0; j < kOwn; ++j) held[slot - 1].of[i][j] += held[slot].of[i][j];
  };
  SumTree tree;
  for (int64_t unit = 0; unit < units; ++unit) {
    Sums& sums = held[tree.next(unit, merge)];
    sums = Sums();
    add_products(sums, tiles, {a, o.m, o.k, true}, {b, o.n, o.k, true}, starts[unit],
                 starts[unit + 1]);
  }
  tree.finish(merge);
  store(c, {}, held[0], o.m, o.n);
}

}  // namespace fovea::cuda
