// bf16 products on the tile registers of AMX, or on their software model (tiles-inl.h). A thread
// computes its share of C in pieces of 32 x 32 (four registers), over as much of k as fits in the
// caches.
//
// The order of sums: k is processed in steps of 32 from the beginning of each unit, the last step
// padded with zeros; a step adds (chain of its 16 products of even k + chain of its 16 products of
// odd k) to the running sum. Shapes, threads and blocks do not affect this order.

#include <cmath>

#include "base/threads.h"
#include "kernels/cpu/gemm/internal.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/scratch.h"
#include "kernels/sum_tree.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/tiles.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/gemm/pack-inl.h"
#include "kernels/cpu/tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace {

constexpr int64_t kPiece = 2 * kTileSide;  // rows and columns of a piece of C
constexpr int64_t kPieceFloats = kPiece * kPiece;
// The rows of A and the columns of B of a piece, over this length of k, take 128 KB each: both fit
// into a second-level cache of 1 MB or more, which delivers them about as fast as they are
// multiplied. If A cannot be read in place, it is packed once for each block of columns; a shorter
// block of k allows wider blocks of columns.
constexpr int64_t kBlockK = 2048, kBlockKPacked = 1024;
constexpr int64_t kPackedBytes = 1 << 20;  // size of a packed block of B
constexpr double kThreadGrain = 1 << 20;   // multiply-adds worth a second thread: 2 us

// Tiles of an operand in the form that the registers read.
struct TileRows {
  const char* data;
  int64_t next_tile, next_step, stride;  // bytes
  const char* at(int64_t tile, int64_t step) const {
    return data + tile * next_tile + step * next_step;
  }
};

int64_t steps_of(const Segment& segment) { return ceil_div(segment.k.size(), kTileDepth); }
int64_t steps_of(const std::vector<Segment>& block) {
  int64_t steps = 0;
  for (const Segment& segment : block) steps += steps_of(segment);
  return steps;
}

template <class Tiles>
class TileShare {
 public:
  TileShare(const Product& p, Range rows, Range columns) : p_(p), rows_(rows), columns_(columns) {
    reads_a_in_place_ = !p.a.transposed && p.units.count == 1 && p.k % kTileDepth == 0;
    blocks_ = blocks_of_k(p, reads_a_in_place_ ? kBlockK : kBlockKPacked, kTileDepth);
    // The registers are stored directly to c if they hold its final values.
    stores_directly_ = p.units.count == 1 && blocks_.size() == 1 && p.second == nullptr &&
                       p.c.dtype == DType::f32 && !p.c.add && p.bias.data == nullptr;
    for (const auto& block : blocks_) most_steps_ = std::max(most_steps_, steps_of(block));
    slots_ = SumTree::slots(p.units.count);
  }

  void run() {
    const int64_t most = kPackedBytes / (most_steps_ * kTileBytes) / 2 * kPiece;
    const int64_t width = even_block(columns_.size(), std::max(kPiece, most), kPiece);
    for (int64_t column = columns_.begin; column < columns_.end; column += width)
      multiply_columns({column, std::min(columns_.end, column + width)});
    tiles_.release();
  }

 private:
  void multiply_columns(Range columns) {
    const int64_t panels = ceil_div(columns.size(), kPiece);
    const int64_t row_pieces = ceil_div(rows_.size(), kPiece);
    const bool carries = blocks_.size() > 1;
    float* sums =
        scratch(ScratchUse::carry, (carries ? panels * row_pieces : 1) * slots_ * kPieceFloats);
    char* packed_b = scratch_bytes(ScratchUse::packed_b, 2 * panels * most_steps_ * kTileBytes);
    std::vector<SumTree> trees(carries ? static_cast<size_t>(panels * row_pieces) : 1);
    for (const auto& block : blocks_) {
      pack_b(block, columns, packed_b);
      for (int64_t i = 0; i < row_pieces; ++i) {
        const int64_t row = rows_.begin + i * kPiece;
        const Range rows = {row, std::min(rows_.end, row + kPiece)};
        const TileRows a = prepare_a(block, rows);
        tiles_.configure_rows(rows.size());
        for (int64_t j = 0; j < panels; ++j) {
          const int64_t column = columns.begin + j * kPiece;
          const int64_t piece = carries ? i * panels + j : 0;
          multiply(block, a, packed_b + 2 * j * steps_of(block) * kTileBytes, rows,
                   {column, std::min(columns.end, column + kPiece)},
                   sums + piece * slots_ * kPieceFloats, trees[static_cast<size_t>(piece)]);
        }
      }
    }
  }

  static char* scratch_bytes(ScratchUse use, int64_t bytes) {
    return reinterpret_cast<char*>(scratch(use, bytes / 4));
  }

  // Packs B as [tile of 16 columns][step][16 pairs][16 columns][2].
  void pack_b(const std::vector<Segment>& block, Range columns, char* to) {
    for (int64_t column = columns.begin; column < columns.end; column += kTileSide) {
      const int64_t count = std::min(kTileSide, columns.end - column);
      for (const Segment& segment : block) {
        auto* words = reinterpret_cast<float*>(to);
        pack_block<NaturalPairs>(segment.of(p_), segment.k, {column, column + count}, words,
                                 steps_of(segment) * kTileSide, kTileSide);
        to += steps_of(segment) * kTileBytes;
      }
    }
    // A piece always reads two tiles of columns, even if the second is empty.
    if (ceil_div(columns.size(), kTileSide) % 2 != 0)
      std::memset(to, 0, static_cast<size_t>(steps_of(block) * kTileBytes));
  }

  // Returns the rows of A in place, or as a copy [tile of 16 rows][step][16 rows][32].
  TileRows prepare_a(const std::vector<Segment>& block, Range rows) {
    const int64_t element = sizeof(bf16);
    if (reads_a_in_place_ && block.size() == 1 && !block.front().second) {
      const auto* a = static_cast<const bf16*>(p_.a.data);
      const bf16* from = a + rows.begin * p_.a.stride + block.front().k.begin;
      return {reinterpret_cast<const char*>(from), kTileSide * p_.a.stride * element,
              kTileDepth * element, p_.a.stride * element};
    }
    const int64_t steps = steps_of(block);
    char* packed = scratch_bytes(ScratchUse::packed_a, 2 * steps * kTileBytes);
    for (int64_t tile = 0; tile * kTileSide < rows.size(); ++tile) {
      const int64_t row = rows.begin + tile * kTileSide;
      const int64_t count = std::min(kTileSide, rows.end - row);
      char* to = packed + tile * steps * kTileBytes;
      for (const Segment& segment : block) {
        const int64_t stride = segment.of(p_).a.stride;
        const auto* a = static_cast<const bf16*>(segment.of(p_).a.data);
        if (p_.a.transposed)
          pack_transposed_tiles(a + segment.k.begin * stride + row, segment.k.size(), count, to);
        else
          copy_tiles(a + row * stride + segment.k.begin, stride, segment.k.size(), count, to);
        to += steps_of(segment) * kTileBytes;
      }
    }
    return {packed, steps * kTileBytes, kTileBytes, kTileDepth * element};
  }

  static void copy_tiles(const bf16* from, int64_t stride, int64_t k, int64_t rows, char* to) {
    constexpr size_t kRowBytes = kTileDepth * sizeof(bf16);
    for (int64_t begin = 0; begin < k; begin += kTileDepth, to += kTileBytes) {
      const auto bytes = static_cast<size_t>(std::min(kTileDepth, k - begin)) * sizeof(bf16);
      if (bytes < kRowBytes) std::memset(to, 0, kTileBytes);
      for (int64_t row = 0; row < rows; ++row) {
        const bf16* source = from + row * stride + begin;
        if (bytes == kRowBytes)
          std::memcpy(to + row * 64, source, kRowBytes);  // a constant size: one instruction
        else
          std::memcpy(to + row * 64, source, bytes);
      }
    }
  }

  // Packs `from` [k, rows]: makes pairs along k as for B, then transposes the words within each
  // tile.
  void pack_transposed_tiles(const bf16* from, int64_t k, int64_t rows, char* to) {
    alignas(64) float pairs[kTileBytes / 4];
    for (int64_t begin = 0; begin < k; begin += kTileDepth, to += kTileBytes) {
      pack_across<NaturalPairs>(from + begin * p_.a.stride, p_.a.stride,
                                std::min(kTileDepth, k - begin), rows, pairs, kTileSide, kTileSide);
      pack_transposed<FloatWords>(pairs, kTileSide, kTileSide, kTileSide,
                                  reinterpret_cast<float*>(to), kTileSide, kTileSide);
    }
  }

  // Multiplies one piece of C over a block of k.
  void multiply(const std::vector<Segment>& block, const TileRows& a, const char* b, Range rows,
                Range columns, float* sums, SumTree& tree) {
    const bool two = rows.size() > kTileSide;
    const int64_t next_b = steps_of(block) * kTileBytes;
    const auto multiply_into = [&](const Segment& segment, int64_t step, float* sum,
                                   int64_t stride) HWY_ATTR {
      if (two)
        multiply_segment<true>(segment, a, b, next_b, step, sum, stride);
      else
        multiply_segment<false>(segment, a, b, next_b, step, sum, stride);
    };
    if (stores_directly_ && columns.size() == kPiece) {
      float* c = static_cast<float*>(p_.c.data) + rows.begin * p_.n + columns.begin;
      return multiply_into(block.front(), 0, c, p_.n);
    }
    int64_t step = 0;
    const auto nothing = [](int) {};  // each unit's sums were merged when it ended
    for (const Segment& segment : block) {
      if (segment.first) tree.next(segment.unit, nothing);
      float* sum = sums + tree.last() * kPieceFloats;
      multiply_into(segment, step, sum, kPiece);
      step += steps_of(segment);
      if (!segment.last) continue;
      const int adds = segment.next < 0 ? tree.merges_at_end() : tree.merges_before(segment.next);
      if (adds > 0) add_pieces(sum, adds);
      tree.merged(adds);
    }
    const Segment& end = block.back();
    if (!end.last || end.k.end != end.of(p_).k) return;
    tree.finish(nothing);
    store(sums, rows, columns);
  }

  template <bool kTwo>
  HWY_INLINE void multiply_segment(const Segment& segment, const TileRows& a, const char* b,
                                   int64_t next_b, int64_t step, float* sum, int64_t columns) {
    const auto sum_stride = static_cast<size_t>(columns) * sizeof(float);
    float* second = sum + kTileSide * columns;
    if (segment.first) {
      tiles_.template zero<0>();
      tiles_.template zero<1>();
      if constexpr (kTwo) {
        tiles_.template zero<2>();
        tiles_.template zero<3>();
      }
    } else {
      tiles_.template load<0>(sum, sum_stride);
      tiles_.template load<1>(sum + kTileSide, sum_stride);
      if constexpr (kTwo) {
        tiles_.template load<2>(second, sum_stride);
        tiles_.template load<3>(second + kTileSide, sum_stride);
      }
    }
    const auto stride = static_cast<size_t>(a.stride);
    const int64_t end = step + steps_of(segment);
    for (; step < end; ++step) {
      tiles_.template load<6>(b + step * kTileBytes, 64);
      tiles_.template load<4>(a.at(0, step), stride);
      tiles_.template load<7>(b + next_b + step * kTileBytes, 64);
      tiles_.template multiply_add<0, 4, 6>();
      if constexpr (kTwo) tiles_.template load<5>(a.at(1, step), stride);
      tiles_.template multiply_add<1, 4, 7>();
      if constexpr (kTwo) {
        tiles_.template multiply_add<2, 5, 6>();
        tiles_.template multiply_add<3, 5, 7>();
      }
    }
    tiles_.template store<0>(sum, sum_stride);
    tiles_.template store<1>(sum + kTileSide, sum_stride);
    if constexpr (kTwo) {
      tiles_.template store<2>(second, sum_stride);
      tiles_.template store<3>(second + kTileSide, sum_stride);
    }
  }

  // Adds the sums of the `adds` pieces before `last` to `last`; the result overwrites the first of
  // these pieces.
  static HWY_INLINE void add_pieces(float* last, int adds) {
    for (int64_t i = 0; i < kPieceFloats; i += kLanes) {
      float* at = last + i;
      Vector sum = hn::Load(Floats(), at);
      for (int j = 0; j < adds; ++j) sum = hn::Add(hn::Load(Floats(), at -= kPieceFloats), sum);
      hn::Store(sum, Floats(), at);
    }
  }

  // c (+)= sums + bias
  void store(float* sums, Range rows, Range columns) {
    if (p_.c.dtype == DType::bf16 && !p_.c.add && p_.bias.data == nullptr &&
        columns.size() == kPiece) {
      auto* to = static_cast<bf16*>(p_.c.data) + rows.begin * p_.n + columns.begin;
      for (int64_t row = 0; row < rows.size(); ++row, to += p_.n, sums += kPiece) {
        for (int64_t i = 0; i < kPiece; i += kLanes)
          Tiles::narrow_to(to + i, hn::Load(Floats(), sums + i));
      }
      return;
    }
    for (int64_t row = rows.begin; row < rows.end; ++row, sums += kPiece) {
      float room[kPiece];
      if (p_.bias.data != nullptr)
        add_floats(sums, widened(p_.bias, columns.begin, columns.size(), room), columns.size());
      narrow_into(p_.c, row * p_.n + columns.begin, columns.size(), sums);
    }
  }

  const Product& p_;
  Range rows_, columns_;
  bool reads_a_in_place_, stores_directly_;
  std::vector<std::vector<Segment>> blocks_;
  int64_t most_steps_ = 1;
  int slots_;
  TileRegisters<Tiles> tiles_;
};

// Nearly square shares are fastest: each thread packs the columns of B that it reads, and its rows
// of A if A is transposed.
ThreadGrid split_tiles(const Product& p) {
  return fastest_grid(p, kThreadGrain, [&](const ThreadGrid& grid) {
    const auto row_pieces = static_cast<double>(ceil_div(ceil_div(p.m, kPiece), grid.rows));
    const auto column_pieces = static_cast<double>(ceil_div(ceil_div(p.n, kPiece), grid.columns));
    // In units of one piece's products; packing costs a quarter of that, or half for a transposed
    // A.
    return row_pieces * column_pieces + 0.25 * column_pieces +
           (p.a.transposed ? 0.5 : 0) * row_pieces;
  });
}

template <class Tiles>
void multiply_tiles(const Product& p) {
  const ThreadGrid grid = split_tiles(p);
  parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t share = begin; share < end; ++share) {
      const Range rows = share_of(p.m, share / grid.columns, grid.rows, kPiece);
      const Range columns = share_of(p.n, share % grid.columns, grid.columns, kPiece);
      if (rows.size() > 0 && columns.size() > 0) TileShare<Tiles>(p, rows, columns).run();
    }
  });
}

}  // namespace

void gemm_tiles_on(bool native, const Product& p) {
  native ? multiply_tiles<NativeTiles>(p) : multiply_tiles<ModelTiles>(p);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(gemm_tiles_on);

void gemm_tiles(const Product& product, bool native) {
  const FloatMode flush(kFlushToZero);
  HWY_DYNAMIC_DISPATCH(gemm_tiles_on)(native, product);
}

}  // namespace fovea::cpu
#endif
