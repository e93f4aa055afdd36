// The blocking is that of Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008), and BLIS: C in register tiles, a panel of B in L1, a block of A in L2.
// Threads split C, never k.

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "kernels/cpu/gemm_internal.h"
#include "kernels/cpu/gemm_scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm_f32.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "kernels/cpu/gemm_micro-inl.h"
#include "kernels/cpu/gemm_pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// One panel of B, kTileColumns x kBlockK floats = 36 KB, stays in a 48 KB L1 while every row of A
// passes.
constexpr size_t kBlockK = 192;
// kBlockRows x kBlockK floats of A (576 KB) and the panels of B being read stay in an L2 of 1 to 2
// MB.
constexpr size_t kBlockRows = 768;
// Bound what a thread keeps beside the operands, whatever the shape: the packed B, kBlockColumns x
// kBlockK floats (576 KB), and the sums that c cannot hold between blocks of k, kCarriedRows x
// kBlockColumns floats (9 MB).
constexpr size_t kBlockColumns = 768;
constexpr size_t kCarriedRows = 3072;
// Rows up to which B is streamed through one panel that never leaves L1: there is no reuse to keep
// more of it for.
constexpr size_t kFewRows = 16;
// Fewer multiply-adds than this (about 1 microsecond's worth) are not worth waking a second thread.
constexpr double kThreadGrain = 65536;

size_t CeilDiv(size_t a, size_t b) { return (a + b - 1) / b; }
size_t RoundUp(size_t a, size_t b) { return CeilDiv(a, b) * b; }

// Blocks of at most `most`, as equal as multiples of `step` can be: no thin last one.
size_t EvenBlock(size_t size, size_t most, size_t step) {
  return size == 0 ? step : RoundUp(CeilDiv(size, CeilDiv(size, most)), step);
}

struct Range {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

struct Matrix {
  const void* data;
  DType dtype;
  size_t stride;
  bool transposed;
};

// The operands in the kernel's own words.
struct Product {
  Out c;
  Matrix a, b;
  In bias;
  size_t m, n, k;
};

template <class Body>
void WithType(DType dtype, const void* data, Body&& body) {
  if (dtype == DType::bf16) return body(static_cast<const bf16*>(data));
  body(static_cast<const float*>(data));
}

// Columns [columns) of B for k in `ks`, to one panel [k][width].
void PackPanel(const Matrix& b, Range ks, Range columns, float* panel) {
  const size_t width = RoundUp(columns.size(), kLanes);
  WithType(b.dtype, b.data, [&](const auto* data) HWY_ATTR {
    if (b.transposed) {
      PackTransposed(data + columns.begin * b.stride + ks.begin, b.stride, ks.size(),
                     columns.size(), panel, width);
    } else {
      PackRows(data + ks.begin * b.stride + columns.begin, b.stride, ks.size(), columns.size(),
               panel, width);
    }
  });
}

// Rows of A for a block of k as the tiles read them: in place, or packed.
struct BlockA {
  const float* data;
  size_t row_stride;
  bool tiles;  // [tile][k][kTileRows] rather than rows
};

// Transposed ones are packed at any size: read in place, each product's elements would lie on a
// page of their own.
BlockA PrepareA(const Matrix& a, Range rows, Range ks, float* packed) {
  if (a.dtype == DType::f32 && !a.transposed) {
    return {static_cast<const float*>(a.data) + rows.begin * a.stride + ks.begin, a.stride, false};
  }
  WithType(a.dtype, a.data, [&](const auto* data) HWY_ATTR {
    if (a.transposed) {
      PackTilesOfTransposed(data + ks.begin * a.stride + rows.begin, a.stride, ks.size(),
                            rows.size(), packed);
    } else {
      PackRows(data + rows.begin * a.stride + ks.begin, a.stride, rows.size(), ks.size(), packed,
               ks.size());
    }
  });
  return {packed, ks.size(), a.transposed};
}

// Rounds finished sums to c: c (+)= tile, whose columns beyond `columns` are padding.
template <class T>
void StoreTile(T* c, size_t c_stride, const float* tile, size_t tile_stride, size_t rows,
               size_t columns, bool add) {
  for (size_t row = 0; row < rows; ++row) {
    T* to = c + row * c_stride;
    const float* from = tile + row * tile_stride;
    for (size_t i = 0; i < columns; ++i) {
      const float value = add ? ToFloat(to[i]) + from[i] : from[i];
      if constexpr (std::is_same_v<T, bf16>)
        to[i] = narrow(value);
      else
        to[i] = value;
    }
  }
}

// One thread's block of C, rows x columns, over the whole of k.
class Block {
 public:
  Block(const Product& product, Range rows, Range columns)
      : p_(product),
        rows_(rows),
        columns_(columns),
        tiles_(CeilDiv(rows.size(), kTileRows)),
        whole_(product.c.dtype == DType::f32 && !product.c.add) {
    block_k_ = EvenBlock(p_.k, kBlockK, 4);
    block_rows_ = EvenBlock(rows_.size(), kBlockRows, kTileRows);
    packed_a_ = gemm_scratch(GemmScratch::packed_a, block_rows_ * block_k_);
    packed_b_ = gemm_scratch(GemmScratch::packed_b, RoundUp(columns_.size(), kLanes) * block_k_);
    const size_t panels = CeilDiv(columns_.size(), kTileColumns);
    const bool carried = p_.k > block_k_;
    const size_t slots = carried ? tiles_ * (whole_ ? 1 : panels) : 1;
    carry_ = gemm_scratch(GemmScratch::carry, slots * kTileRows * kTileColumns);
    if (p_.bias.data) WidenBias();
  }

  void Run() {
    size_t begin = 0;
    do {  // at least once: without products c is still set to the bias
      ks_ = {begin, std::min(p_.k, begin + block_k_)};
      for (size_t row = rows_.begin; row < rows_.end; row += block_rows_) {
        MultiplyRows({row, std::min(rows_.end, row + block_rows_)});
      }
      begin = ks_.end;
    } while (begin < p_.k);
  }

 private:
  void WidenBias() {
    bias_ = gemm_scratch(GemmScratch::bias, RoundUp(columns_.size(), kLanes));
    WithType(p_.bias.dtype, p_.bias.data, [&](const auto* data) HWY_ATTR {
      PackRows(data + columns_.begin, 0, 1, columns_.size(), bias_,
               RoundUp(columns_.size(), kLanes));
    });
  }

  void MultiplyRows(Range rows) {
    const BlockA a = PrepareA(p_.a, rows, ks_, packed_a_);
    float* panel = packed_b_;
    for (size_t column = columns_.begin; column < columns_.end; column += kTileColumns) {
      const Range columns = {column, std::min(columns_.end, column + kTileColumns)};
      // Packed just before its first use, and so already in L1.
      if (rows.begin == rows_.begin) PackPanel(p_.b, ks_, columns, panel);
      for (size_t row = rows.begin; row < rows.end; row += kTileRows) {
        Multiply(a, row - rows.begin, {row, std::min(rows.end, row + kTileRows)}, columns, panel);
      }
      // A panel that no other rows will ask for is overwritten by the next while it is still in L1.
      if (block_rows_ < rows_.size()) panel += RoundUp(columns.size(), kLanes) * ks_.size();
    }
  }

  // One tile over one block of k. Its sums are carried in c itself where c can hold them as they
  // are.
  void Multiply(const BlockA& a, size_t row_in_a, Range rows, Range columns, const float* panel) {
    const bool first = ks_.begin == 0, last = ks_.end == p_.k;
    // c itself holds the sums if it can hold whole tiles of them and, to be added to, gets them all
    // at once.
    const bool adds = p_.c.add && first && last;
    const bool in_place =
        p_.c.dtype == DType::f32 && (!p_.c.add || adds) && columns.size() % kLanes == 0;
    const size_t offset = rows.begin * p_.n + columns.begin;
    const size_t row = (rows.begin - rows_.begin) / kTileRows;
    const size_t panel_index = whole_ ? 0 : (columns.begin - columns_.begin) / kTileColumns;
    const size_t slot = first && last ? 0 : panel_index * tiles_ + row;
    float* tile = in_place ? static_cast<float*>(p_.c.data) + offset
                           : carry_ + slot * kTileRows * kTileColumns;
    const size_t stride = in_place ? p_.n : kTileColumns;
    const float* bias = last && bias_ ? bias_ + (columns.begin - columns_.begin) : nullptr;
    const size_t vectors = CeilDiv(columns.size(), kLanes);
    const TileA tile_a = {a.data + row_in_a * a.row_stride, a.row_stride};
    const TileFunction multiply = a.tiles ? TileFunctionOf<true, kTileRows>(rows.size(), vectors)
                                          : TileFunctionOf<false, kTileRows>(rows.size(), vectors);
    multiply(tile_a, panel, ks_.size(), tile, stride, first, bias, in_place && adds);
    if (!last || in_place) return;
    if (p_.c.dtype == DType::bf16) {
      StoreTile(static_cast<bf16*>(p_.c.data) + offset, p_.n, tile, stride, rows.size(),
                columns.size(), p_.c.add);
    } else {
      StoreTile(static_cast<float*>(p_.c.data) + offset, p_.n, tile, stride, rows.size(),
                columns.size(), p_.c.add);
    }
  }

  const Product& p_;
  Range rows_, columns_;
  size_t tiles_;
  bool whole_;  // c is f32 and set, so whole tiles live in it from the first block of k on
  size_t block_k_, block_rows_;
  Range ks_ = {0, 0};
  float *packed_a_, *packed_b_, *carry_, *bias_ = nullptr;
};

// How many threads share the rows and how many the columns.
struct Grid {
  size_t rows, columns;
};

// Cycles per k of one row of tiles over `columns`: two multiply-adds start per cycle, and a panel
// of one vector waits for its loads instead.
double CyclesOfTiles(size_t columns) {
  const size_t vectors = CeilDiv(columns, kLanes);
  const double whole = static_cast<double>(vectors / kTileVectors) * kTileRows * kTileVectors / 2;
  const size_t rest = vectors % kTileVectors;
  return whole + (rest == 1 ? kTileRows * 0.75 : kTileRows * static_cast<double>(rest) / 2);
}

// The split of C whose largest share takes the least time. Each thread packs what it reads, at
// about half a cycle an element, so squarish shares pack less; uneven ones wait for the largest.
Grid SplitOverThreads(const Product& p) {
  const double products =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const auto threads = std::min<size_t>(static_cast<size_t>(thread_count()),
                                        static_cast<size_t>(products / kThreadGrain) + 1);
  Grid best = {1, 1};
  double least = INFINITY;
  const bool packs_a = p.a.transposed || p.a.dtype != DType::f32;
  for (size_t rows = 1; rows <= threads; ++rows) {
    const Grid grid = {rows, threads / rows};
    const size_t tiles = CeilDiv(CeilDiv(p.m, kTileRows), grid.rows);
    const size_t columns = RoundUp(CeilDiv(p.n, grid.columns), kLanes);
    const double packing = 0.5 * static_cast<double>(columns + (packs_a ? tiles * kTileRows : 0));
    const double cycles = static_cast<double>(tiles) * CyclesOfTiles(columns) + packing;
    if (cycles < least) best = grid, least = cycles;
  }
  return best;
}

// Share `index` of `count` of [0, size), at multiples of `step`.
Range Share(size_t size, size_t index, size_t count, size_t step) {
  const size_t units = CeilDiv(size, step);
  return {std::min(size, units * index / count * step),
          std::min(size, units * (index + 1) / count * step)};
}

void MultiplyShare(const Product& p, Range rows, Range columns) {
  const size_t most = rows.size() <= kFewRows ? kTileColumns : kBlockColumns;
  const size_t step = EvenBlock(columns.size(), most, kTileColumns);
  const size_t row_step = EvenBlock(rows.size(), kCarriedRows, kTileRows);
  for (size_t row = rows.begin; row < rows.end; row += row_step) {
    for (size_t column = columns.begin; column < columns.end; column += step) {
      Block(p, {row, std::min(rows.end, row + row_step)},
            {column, std::min(columns.end, column + step)})
          .Run();
    }
  }
}

void GemmF32(const Out& c, const In& a, const In& b, const In& bias, const GemmShape& shape) {
  const auto m = static_cast<size_t>(shape.m), n = static_cast<size_t>(shape.n),
             k = static_cast<size_t>(shape.k);
  const Product p = {c,
                     {a.data, a.dtype, shape.transpose_a ? m : k, shape.transpose_a},
                     {b.data, b.dtype, shape.transpose_b ? k : n, shape.transpose_b},
                     bias,
                     m,
                     n,
                     k};
  const Grid grid = SplitOverThreads(p);
  parallel_for(
      static_cast<int64_t>(grid.rows * grid.columns), 1, [&](int64_t begin, int64_t end) HWY_ATTR {
        for (auto share = static_cast<size_t>(begin); share < static_cast<size_t>(end); ++share) {
          MultiplyShare(p, Share(m, share / grid.columns, grid.rows, kTileRows),
                        Share(n, share % grid.columns, grid.columns, kLanes));
        }
      });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(GemmF32);

void gemm_f32(Out c, In a, In b, In bias, const GemmShape& shape) {
  HWY_DYNAMIC_DISPATCH(GemmF32)(c, a, b, bias, shape);
}

}  // namespace fovea::cpu
#endif
