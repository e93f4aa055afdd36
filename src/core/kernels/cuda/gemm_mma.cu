// Products of bf16 on tensor cores.

#include "kernels/cuda/mma.cuh"
#include "kernels/sum_tree.h"

namespace fovea::cuda {
namespace {

// An operand of a product: element (i, l), where l counts along k.
struct HalfOperand {
  const bf16* x;
  int64_t count, k;  // of i and l
  bool k_first;      // stored as [k, count], else [count, k]
};

template <MmaShape shape>
struct Mma {
  static constexpr int kRows = shape.rows(), kColumns = shape.columns();
  static constexpr int kRowParts = shape.row_parts, kColumnParts = shape.column_parts;

  struct alignas(16) Tiles {
    bf16 a[kStages][shape.elements(kRows)], b[kStages][shape.elements(kColumns)];
  };
  struct Sums {
    float of[kRowParts][kColumnParts][4] = {};
  };

  template <int kCount>
  DEVICE static void load(bf16* to, const HalfOperand& x, int64_t first, int64_t l, int64_t end,
                          bool wide) {
    const int row_length = x.k_first ? kCount : kInner, vectors = row_length / kVector;
    for (int e = thread(); e < kCount * kInner / kVector; e += threads()) {
      const int row = e / vectors, column = e % vectors * kVector;
      bf16* const at = to + row * (row_length + kPad) + column;
      const int64_t i = first + (x.k_first ? column : row), depth = l + (x.k_first ? row : column);
      const int64_t offset = x.k_first ? depth * x.count + i : i * x.k + depth;
      const bool inside = i < x.count && depth < end;
      const int64_t left = x.k_first ? x.count - i : end - depth;
      copy_vector(at, x.x + offset, inside ? left : 0, wide);
    }
  }

  DEVICE static int first_row() { return warp() / shape.warp_columns * kRowParts * 16; }
  DEVICE static int first_column() { return warp() % shape.warp_columns * kColumnParts * 8; }

  DEVICE static void multiply(Sums& sums, const bf16* a, bool a_k_first, const bf16* b,
                              bool b_k_first) {
    UNROLLED for (int k = 0; k < kInner; k += 16) {
      uint32_t rows[kRowParts][4], columns[kColumnParts / 2][4];
      UNROLLED for (int i = 0; i < kRowParts; ++i) a_k_first
          ? load_left_k_first(rows[i], a, kRows + kPad, first_row() + 16 * i, k)
          : load_left(rows[i], a, kInner + kPad, first_row() + 16 * i, k);
      UNROLLED for (int j = 0; j < kColumnParts / 2; ++j) b_k_first
          ? load_right_k_first(columns[j], b, kColumns + kPad, first_column() + 16 * j, k)
          : load_right(columns[j], b, kInner + kPad, first_column() + 16 * j, k);
      UNROLLED for (int i = 0; i < kRowParts; ++i)
          UNROLLED for (int j = 0; j < kColumnParts; j += 2)
              multiply_16(sums.of[i][j], sums.of[i][j + 1], rows[i], columns[j / 2]);
    }
  }

  // Continues the sums over k from begin to end.
  DEVICE static void add_products(Sums& sums, Tiles& tiles, const HalfOperand& a,
                                  const HalfOperand& b, int64_t begin, int64_t end, bool wide) {
    const int64_t steps = (end - begin + kInner - 1) / kInner;
    const auto start = [&](int64_t step) {
      if (step < steps) {
        const int stage = static_cast<int>(step % kStages);
        const int64_t l = begin + step * kInner;
        load<kRows>(tiles.a[stage], a, static_cast<int64_t>(block_y()) * kRows, l, end, wide);
        load<kColumns>(tiles.b[stage], b, static_cast<int64_t>(block_x()) * kColumns, l, end, wide);
      }
      copies_begun();
    };
    for (int step = 0; step < kStages - 1; ++step) start(step);
    for (int64_t step = 0; step < steps; ++step) {
      wait_copies<kStages - 2>();
      barrier();  // the stage is complete, and all have multiplied the one before it
      start(step + kStages - 1);
      const int stage = static_cast<int>(step % kStages);
      multiply(sums, tiles.a[stage], a.k_first, tiles.b[stage], b.k_first);
    }
    wait_copies<0>();
    barrier();
  }

  DEVICE static void store(Out c, In bias, const Sums& sums, int64_t m, int64_t n) {
    UNROLLED for (int i = 0; i < kRowParts; ++i) UNROLLED for (int j = 0; j < kColumnParts; ++j)
        UNROLLED for (int e = 0; e < 4; ++e) {
      const int64_t row =
          static_cast<int64_t>(block_y()) * kRows + first_row() + 16 * i + lane() / 4 + e / 2 * 8;
      const int64_t column = static_cast<int64_t>(block_x()) * kColumns + first_column() + 8 * j +
                             2 * (lane() % 4) + e % 2;
      if (row >= m || column >= n) continue;
      const float added = bias.data != nullptr ? get(bias, column) : 0;
      put(c, row * n + column, bias.data != nullptr ? sums.of[i][j][e] + added : sums.of[i][j][e]);
    }
  }

  DEVICE static void product(Out c, In a, In b, In bias, const GemmOperands& o, bool wide) {
    SHARED(Tiles, tiles);
    Sums sums;
    add_products(sums, tiles, operand(a, o.m, o.k, o.transpose_a),
                 operand(b, o.n, o.k, !o.transpose_b), 0, o.k, wide);
    if (o.second_k > 0)
      add_products(sums, tiles, operand(o.second_a, o.m, o.second_k, false),
                   operand(o.second_b, o.n, o.second_k, !o.transpose_b), 0, o.second_k, wide);
    store(c, bias, sums, o.m, o.n);
  }
  DEVICE static HalfOperand operand(In x, int64_t count, int64_t k, bool k_first) {
    return {static_cast<const bf16*>(x.data), count, k, k_first};
  }
};

using Whole = Mma<kWholeTiles>;
using FewRows = Mma<kFewRows>;

}  // namespace

KERNEL(gemm_mma)(Out c, In a, In b, In bias, GemmOperands operands, bool wide) {
  Whole::product(c, a, b, bias, operands, wide);
}

KERNEL(gemm_mma_few_rows)(Out c, In a, In b, In bias, GemmOperands operands, bool wide) {
  FewRows::product(c, a, b, bias, operands, wide);
}

KERNEL(gemm_mma_units)
(Out c, In a, In b, GemmOperands o, const int64_t* starts, int64_t units, bool wide) {
  SHARED(Whole::Tiles, tiles);
  Whole::Sums held[SumTree::slots(1 << 20)];
  const auto merge = [&](int slot) {
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j)
        for (int e = 0; e < 4; ++e) held[slot - 1].of[i][j][e] += held[slot].of[i][j][e];
  };
  SumTree tree;
  for (int64_t unit = 0; unit < units; ++unit) {
    Whole::Sums sums;
    const int slot = tree.next(unit, merge);
    Whole::add_products(sums, tiles, Whole::operand(a, o.m, o.k, true),
                        Whole::operand(b, o.n, o.k, true), starts[unit], starts[unit + 1], wide);
    held[slot] = sums;
  }
  tree.finish(merge);
  Whole::store(c, {}, held[0], o.m, o.n);
}

}  // namespace fovea::cuda
