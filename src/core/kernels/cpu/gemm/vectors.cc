// Products with vectors: fp32; bf16 as fp32, widened during packing; and bf16 in pairs on CPUs with
// AVX512-BF16, or on its software model (bf16_pairs-inl.h).
//
// The blocking is that of Goto and van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008), and BLIS: C in register tiles, a panel of B in L1, a block of A in L2.
// Threads split C, never k.

#include <cmath>

#include "base/threads.h"
#include "kernels/cpu/gemm/internal.h"
#include "kernels/cpu/product.h"
#include "kernels/cpu/scratch.h"
#include "kernels/sum_tree.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/vectors.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/gemm/micro-inl.h"
#include "kernels/cpu/gemm/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace {

// In words: one panel of B, kTileColumns x kBlockK (36 KB), stays in an L1 of 48 KB while all rows
// of A are processed.
constexpr int64_t kBlockK = 192;
// If k is summed by units, the sums of a tile's units stay in L1, and a panel of B in L2.
constexpr int64_t kBlockKOfUnits = 2048;
// The words of a block of A (576 KB) and the current panels of B stay in an L2 of 1 to 2 MB.
constexpr int64_t kBlockA = 768 * kBlockK;
// Limits of the memory that a thread uses besides the operands, for any shape: the packed B,
// kBlockColumns x kBlockK words (576 KB; with units, x kBlockKOfUnits: 6 MB), and the sums that c
// cannot hold between blocks of k, kCarriedRows x kBlockColumns floats (9 MB).
constexpr int64_t kBlockColumns = 768;
constexpr int64_t kCarriedRows = 3072;
// Up to this number of rows, B is streamed through one panel that stays in L1; so few rows do not
// reuse B enough to store more of it.
constexpr int64_t kFewRows = 16;
// Fewer multiply-adds (about 1 microsecond) are not worth waking a second thread.
constexpr double kThreadGrain = 65536;

// Calls body with the type of the words, floats (to which bf16 is widened) or pairs of bf16, and
// the data.
template <bool kPairs, class Body>
void with_words(const Matrix& matrix, Body&& body) {
  const auto* halves = static_cast<const bf16*>(matrix.data);
  if constexpr (kPairs) return body(ChainPairs(), halves);
  if (matrix.dtype == DType::bf16) return body(WidenedWords(), halves);
  body(FloatWords(), static_cast<const float*>(matrix.data));
}

// Rows of A for a block of k in the form that the tiles read: in place or packed.
struct BlockA {
  const float* data;
  int64_t row_stride;
  bool tiles;  // [tile][word][kTileRows] rather than rows
};

// One thread's block of C, rows x columns, over all of k.
template <class Products, bool kPairs>
class Block {
 public:
  // `kept`: the part of a KeptOperand for these columns, or null.
  Block(const Product& product, Range rows, Range columns, float* kept)
      : p_(product),
        rows_(rows),
        columns_(columns),
        tiles_(ceil_div(rows.size(), kTileRows)),
        by_units_(p_.units.count > 1),
        whole_(p_.c.dtype == DType::f32 && !p_.c.add && !by_units_),
        slots_(SumTree::slots(p_.units.count)),
        kept_(kept) {
    // Packed weights are unpacked from complete vectors of outputs, which may lie along k.
    const int64_t step = p_.packed == nullptr ? 4 : kPanelOutputs;
    blocks_ = blocks_of_k(p_, kDepth * (by_units_ ? kBlockKOfUnits : kBlockK), step);
    for (const auto& block : blocks_) {
      most_words_ = std::max(most_words_, words_of(block));
      all_words_ += words_of(block);
    }
    const int64_t most_rows = std::max(kTileRows, kBlockA / most_words_ / kTileRows * kTileRows);
    block_rows_ = even_block(rows_.size(), most_rows, kTileRows);
    packed_a_ = scratch(ScratchUse::packed_a, block_rows_ * most_words_);
    packed_b_ = scratch(ScratchUse::packed_b, round_up(columns_.size(), kLanes) * most_words_);
    const int64_t panels = ceil_div(columns_.size(), kTileColumns);
    carried_ = blocks_.size() > 1;
    const int64_t slots = carried_ ? tiles_ * (whole_ ? 1 : panels) : 1;
    carry_ = scratch(ScratchUse::carry, slots * slots_ * kTileFloats);
    trees_.resize(by_units_ ? static_cast<size_t>(slots) : 0);
    if (p_.bias.data) widen_bias();
  }

  void run() {
    for (const auto& block : blocks_) {
      for (int64_t row = rows_.begin; row < rows_.end; row += block_rows_)
        multiply_rows(block, {row, std::min(rows_.end, row + block_rows_)});
      words_before_ += words_of(block);
    }
  }

 private:
  static constexpr int64_t kDepth = kPairs ? 2 : 1;
  static constexpr int64_t kTileFloats = kTileRows * kTileColumns;

  // On every CPU, a bf16 product processes k in pairs and pads an odd k with a zero, so that all
  // CPUs compute the same sum.
  int64_t words_of(const Segment& segment) const {
    return p_.bf16_pairs ? ceil_div(segment.k.size(), 2) * (2 / kDepth) : segment.k.size();
  }
  int64_t words_of(const std::vector<Segment>& block) const {
    int64_t words = 0;
    for (const Segment& segment : block) words += words_of(segment);
    return words;
  }

  void widen_bias() {
    bias_ = scratch(ScratchUse::bias, round_up(columns_.size(), kLanes));
    float* to = bias_;
    if (p_.bias.dtype == DType::bf16)
      widen_all(to, static_cast<const bf16*>(p_.bias.data) + columns_.begin, columns_.size());
    else
      std::copy_n(static_cast<const float*>(p_.bias.data) + columns_.begin, columns_.size(), to);
    std::fill(to + columns_.size(), to + round_up(columns_.size(), kLanes), 0.0f);
  }

  // Packs `columns` of B for a block of k into one panel [word][width].
  void pack_panel(const std::vector<Segment>& block, Range columns, float* panel) {
    const int64_t width = round_up(columns.size(), kLanes);
    with_words<kPairs>(p_.b, [&](auto kind, const auto*) HWY_ATTR {
      using W = decltype(kind);
      for (const Segment& segment : block) {
        const int64_t words = words_of(segment);
        pack_block<W>(segment.of(p_), segment.k, columns, panel, words, width);
        panel += words * width;
      }
    });
  }

  // A transposed A is always packed: read in place, the elements of each product would lie on
  // different pages.
  BlockA prepare_a(const std::vector<Segment>& block, Range rows) {
    const Matrix& a = block.front().of(p_).a;
    const int64_t words = words_of(block);
    if (a.transposed) {
      with_words<kPairs>(a, [&](auto kind, const auto* data) HWY_ATTR {
        pack_tiles<decltype(kind)>(block, data + rows.begin, rows.size());
      });
      return {packed_a_, words, true};
    }
    if (a.dtype == DType::f32 && block.size() == 1) {
      return {static_cast<const float*>(a.data) + rows.begin * a.stride + block.front().k.begin,
              a.stride, false};
    }
    float* to = packed_a_;
    for (const Segment& segment : block) {
      with_words<kPairs>(segment.of(p_).a, [&](auto kind, const auto* data) HWY_ATTR {
        const int64_t stride = segment.of(p_).a.stride;
        pack_along<decltype(kind)>(data + rows.begin * stride + segment.k.begin, stride,
                                   segment.k.size(), rows.size(), to, words_of(segment), words);
      });
      to += words_of(segment);
    }
    return {packed_a_, words, false};
  }

  // Packs rows of A stored [k, rows] into consecutive tiles [word][kTileRows]. It reads the rows of
  // two tiles, which are one vector of x86, at once, so that each vector is loaded once.
  template <class W>
  void pack_tiles(const std::vector<Segment>& block, const typename W::T* from, int64_t rows) {
    static_assert(kLanes == 2 * kTileRows || kTileRows % kLanes == 0);
    constexpr int64_t kStep = std::max(kLanes, kTileRows);
    const int64_t tile = kTileRows * words_of(block);
    for (int64_t row = 0; row < rows; row += kStep) {
      float* to = packed_a_ + row / kTileRows * tile;
      for (const Segment& segment : block) {
        const auto* first = from + segment.k.begin * p_.a.stride;
        for (int64_t i = 0; i < words_of(segment); ++i, to += kTileRows) {
          prefetch_words<W>(first + row, p_.a.stride, i);
          const auto words = [&](int64_t from_row) HWY_ATTR {
            return words_across<W>(first, p_.a.stride, segment.k.size(), rows, i, from_row);
          };
          if constexpr (kLanes > kTileRows) {
            const hn::Half<Floats> half;
            const Vector both = words(row);
            hn::Store(hn::LowerHalf(half, both), half, to);
            if (row + kTileRows < rows) hn::Store(hn::UpperHalf(half, both), half, to + tile);
          } else {
            for (int64_t lane = 0; lane < kTileRows; lane += kLanes)
              hn::Store(words(row + lane), Floats(), to + lane);
          }
        }
      }
    }
  }

  void multiply_rows(const std::vector<Segment>& block, Range rows) {
    const BlockA a = prepare_a(block, rows);
    float* panel = packed_b_;
    for (int64_t column = columns_.begin; column < columns_.end; column += kTileColumns) {
      const Range columns = {column, std::min(columns_.end, column + kTileColumns)};
      if (kept_ != nullptr)
        panel = kept_ + (column - columns_.begin) * all_words_ +
                round_up(columns.size(), kLanes) * words_before_;
      const bool packed = kept_ != nullptr && p_.kept->filled;
      // The panel is packed immediately before its first use, so it is already in L1.
      if (rows.begin == rows_.begin && !packed) pack_panel(block, columns, panel);
      for (int64_t row = rows.begin; row < rows.end; row += kTileRows) {
        const Range tile = {row, std::min(rows.end, row + kTileRows)};
        const BlockA tile_a = {a.data + (row - rows.begin) * a.row_stride, a.row_stride, a.tiles};
        if (by_units_)
          multiply_units(block, tile_a, tile, columns, panel);
        else
          multiply(block, tile_a, tile, columns, panel);
      }
      // A panel that no other rows need is overwritten by the next one while it is still in L1.
      if (block_rows_ < rows_.size()) panel += round_up(columns.size(), kLanes) * words_of(block);
    }
  }

  static TileFunction function_of(const BlockA& a, Range rows, Range columns) {
    const int64_t vectors = ceil_div(columns.size(), kLanes);
    return a.tiles ? tile_function_of<Products, true>(rows.size(), vectors)
                   : tile_function_of<Products, false>(rows.size(), vectors);
  }

  // Returns the index of a tile's sums, which are stored between blocks of k.
  int64_t slot_of(Range rows, Range columns) const {
    if (!carried_) return 0;
    const int64_t row = (rows.begin - rows_.begin) / kTileRows;
    const int64_t panel = whole_ ? 0 : (columns.begin - columns_.begin) / kTileColumns;
    return panel * tiles_ + row;
  }

  // Multiplies one tile over one block of k. c itself stores the sums between blocks if it can hold
  // them unrounded.
  void multiply(const std::vector<Segment>& block, const BlockA& a, Range rows, Range columns,
                const float* panel) {
    const bool first = block.front().first, last = block.back().last;
    // c can hold the sums if the tile consists of complete vectors; with c.add, it must receive all
    // sums at once.
    const bool adds = p_.c.add && first && last;
    const bool in_place =
        p_.c.dtype == DType::f32 && (!p_.c.add || adds) && columns.size() % kLanes == 0;
    float* tile = in_place ? static_cast<float*>(p_.c.data) + rows.begin * p_.n + columns.begin
                           : carry_ + slot_of(rows, columns) * kTileFloats;
    const int64_t stride = in_place ? p_.n : kTileColumns;
    const float* bias = last && bias_ ? bias_ + (columns.begin - columns_.begin) : nullptr;
    if (last && !in_place) prefetch_c(rows, columns);
    function_of(a, rows, columns)({a.data, a.row_stride}, panel, words_of(block),
                                  {tile, stride, first, in_place && adds}, bias);
    if (last && !in_place) store(tile, rows, columns);
  }

  // Multiplies one tile over the units of a block; each unit has its own sum.
  void multiply_units(const std::vector<Segment>& block, const BlockA& a, Range rows, Range columns,
                      const float* panel) {
    const int64_t slot = slot_of(rows, columns), width = round_up(columns.size(), kLanes);
    SumTree& tree = trees_[static_cast<size_t>(slot)];
    float* sums = carry_ + slot * slots_ * kTileFloats;
    const auto nothing = [](int) {};  // each unit's sums were merged when it ended
    const TileFunction tile_function = function_of(a, rows, columns);
    TileA tile_a = {a.data, a.row_stride};
    for (const Segment& segment : block) {
      if (segment.first) tree.next(segment.unit, nothing);
      TileSums tile = {sums + tree.last() * kTileFloats, kTileColumns, segment.first};
      if (segment.last) {
        tile.apart = kTileFloats;
        tile.adds = segment.next < 0 ? tree.merges_at_end() : tree.merges_before(segment.next);
        tree.merged(tile.adds);
      }
      const int64_t words = words_of(segment);
      tile_function(tile_a, panel, words, tile, nullptr);
      tile_a.data += words * kTileRows;
      panel += words * width;
    }
    if (block.back().k.end < p_.k) return;
    tree.finish(nothing);
    store(sums, rows, columns);
  }

  // Prefetches the part of c to which store() will write.
  void prefetch_c(Range rows, Range columns) const {
    const int64_t element = static_cast<int64_t>(size_of(p_.c.dtype));
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      const char* to = static_cast<const char*>(p_.c.data) + row * p_.n * element;
      for (int64_t i = columns.begin * element; i < columns.end * element; i += 64)
        hwy::Prefetch(to + i);
    }
  }

  // Writes finished sums to c.
  void store(float* tile, Range rows, Range columns) {
    const int64_t whole = columns.size() / kLanes * kLanes;
    for (int64_t row = rows.begin; row < rows.end; ++row, tile += kTileColumns) {
      const int64_t at = row * p_.n + columns.begin;
      if (p_.c.dtype == DType::f32) {
        float* to = static_cast<float*>(p_.c.data) + at;
        for (int64_t i = 0; i < whole; i += kLanes) {
          const Vector sum = hn::Load(Floats(), tile + i);
          hn::StoreU(p_.c.add ? hn::Add(hn::LoadU(Floats(), to + i), sum) : sum, Floats(), to + i);
        }
      } else {
        uint16_t* to = &(static_cast<bf16*>(p_.c.data) + at)->bits;
        const hn::Rebind<uint16_t, Floats> halves;
        for (int64_t i = 0; i < whole; i += kLanes) {
          const Vector sum = hn::Load(Floats(), tile + i);
          const Vector result =
              p_.c.add ? hn::Add(widen_half(hn::LoadU(halves, to + i)), sum) : sum;
          hn::StoreU(narrow_half(result), halves, to + i);
        }
      }
      if (whole < columns.size())
        narrow_into(p_.c, at + whole, columns.size() - whole, tile + whole);
    }
  }

  const Product& p_;
  Range rows_, columns_;
  int64_t tiles_;
  bool by_units_;
  bool whole_;  // c is f32 and assigned, so it holds complete tiles from the first block of k
  int slots_;
  std::vector<std::vector<Segment>> blocks_;
  int64_t most_words_ = 1, all_words_ = 0, words_before_ = 0, block_rows_;
  bool carried_;  // whether sums are kept between blocks of k
  std::vector<SumTree> trees_;
  float *packed_a_, *packed_b_, *carry_, *bias_ = nullptr, *kept_;
};

// Returns the cycles per k of one row of tiles over `columns` columns: two multiply-adds start per
// cycle; a panel of one vector is limited by its loads.
double cycles_of_tiles(int64_t columns) {
  const int64_t vectors = ceil_div(columns, kLanes);
  const int64_t whole = vectors / kTileVectors, rest = vectors % kTileVectors;
  return static_cast<double>(whole * kTileRows * kTileVectors) / 2 +
         (rest == 1 ? kTileRows * 0.75 : kTileRows * static_cast<double>(rest) / 2);
}

// Each thread packs the operands that it reads, at about half a cycle per element, so nearly square
// shares have less to pack. Packed integers take about two cycles, since they are unpacked first.
ThreadGrid split_vectors(const Product& p) {
  const bool packs_a = p.a.transposed || p.a.dtype != DType::f32;
  const double of_b = p.packed != nullptr && has_integers(p.packed->format) ? 2 : 0.5;
  return fastest_grid(p, kThreadGrain, [&](const ThreadGrid& grid) {
    const int64_t tiles = ceil_div(ceil_div(p.m, kTileRows), grid.rows);
    const int64_t columns = round_up(ceil_div(p.n, grid.columns), kLanes);
    const double packing = of_b * static_cast<double>(columns) +
                           0.5 * static_cast<double>(packs_a ? tiles * kTileRows : 0);
    return static_cast<double>(tiles) * cycles_of_tiles(columns) + packing;
  });
}

// Returns the memory of a share for b, packed: [column of tiles][word][column], where words are at
// most the number of values of k, rounded up to a pair.
float* kept_operand(const Product& p, int64_t share, Range columns) {
  if (p.kept == nullptr) return nullptr;
  constexpr int64_t kLine = 64 / sizeof(float);
  std::vector<float>& memory = p.kept->shares[static_cast<size_t>(share)];
  memory.resize(static_cast<size_t>(round_up(columns.size(), kLanes) * round_up(p.k, 2) + kLine));
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (64 - address % 64) % 64 / sizeof(float);
}

template <class Products, bool kPairs>
void multiply_share(const Product& p, Range rows, Range columns, float* kept) {
  const int64_t most = rows.size() <= kFewRows ? kTileColumns : kBlockColumns;
  const int64_t step = even_block(columns.size(), most, kTileColumns);
  const int64_t carried = kCarriedRows / SumTree::slots(p.units.count);
  const int64_t row_step = even_block(rows.size(), carried, kTileRows);
  const int64_t words = round_up(p.k, 2);  // of a kept column, at most
  for (int64_t row = rows.begin; row < rows.end; row += row_step) {
    for (int64_t column = columns.begin; column < columns.end; column += step) {
      Block<Products, kPairs>(p, {row, std::min(rows.end, row + row_step)},
                              {column, std::min(columns.end, column + step)},
                              kept == nullptr ? nullptr : kept + (column - columns.begin) * words)
          .run();
    }
  }
}

template <class Products, bool kPairs>
void multiply_vectors(const Product& p) {
  const ThreadGrid grid = split_vectors(p);
  if (p.kept != nullptr) p.kept->shares.resize(static_cast<size_t>(grid.rows * grid.columns));
  parallel_for(grid.rows * grid.columns, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t share = begin; share < end; ++share) {
      const Range columns = share_of(p.n, share % grid.columns, grid.columns, kLanes);
      multiply_share<Products, kPairs>(p, share_of(p.m, share / grid.columns, grid.rows, kTileRows),
                                       columns, kept_operand(p, share, columns));
    }
  });
  if (p.kept != nullptr) p.kept->filled = true;
}

}  // namespace

void gemm_vectors_on(VectorProducts how, const Product& p) {
  switch (how) {
    case VectorProducts::floats: return multiply_vectors<FloatProducts, false>(p);
    case VectorProducts::pairs: return multiply_vectors<PairProducts<NativePairs>, true>(p);
    case VectorProducts::model_pairs: return multiply_vectors<PairProducts<ModelPairs>, true>(p);
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(gemm_vectors_on);

void gemm_vectors(const Product& product, VectorProducts how) {
  const FloatMode mode(product.bf16_pairs ? kFlushToZero : FloatMode::current());
  HWY_DYNAMIC_DISPATCH(gemm_vectors_on)(how, product);
}

}  // namespace fovea::cpu
#endif
