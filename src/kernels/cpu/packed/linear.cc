// Products with weights that were packed once. Threads share the panels, and also the rows if there
// are fewer panels than threads. Each thread loops over blocks of panels, then blocks of k, then
// all rows, so that weights are read from memory once for up to kCarriedTiles tiles of rows.
// Blocking does not affect results: sums are kept unrounded between blocks.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/packed/job.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/stored.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed/linear.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/packed/tiles-inl.h"
#include "kernels/cpu/packed/whole-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Fewer multiply-adds (about 1 microsecond) are not worth waking a second thread.
constexpr int64_t kThreadGrain = 65536;
// Threads are never equally fast: if each has more work than this, the work is split into several
// pieces per thread, and a free thread takes the next piece.
constexpr int64_t kPieceWork = 8 * kThreadGrain, kMostPieces = 8;
// Limits the sums that a thread keeps between blocks of k: kCarriedTiles x 8 rows x 64 floats (1
// MB, in L2); 2 MB for AMX's tiles.
constexpr int64_t kCarriedTiles = 512;

using Tile = void (*)(const PackedJob&, Range rows, int64_t panel, Range k, float* sums,
                      const Ahead&);

// Returns the function for a tile of `rows` rows and `panels` panels. `panels` is 1 or the largest
// number for `rows` or rows + 1 rows.
template <class Tiles, int kRows = Tiles::kMostRows>
Tile tile_of(int64_t rows, int64_t panels) {
  if constexpr (requires { Tiles::function_of(rows, panels); }) {
    return Tiles::function_of(rows, panels);
  } else {
    if constexpr (kRows > 1) {
      if (rows < kRows) return tile_of<Tiles, kRows - 1>(rows, panels);
    }
    constexpr int kPanels = Tiles::panels(kRows), kNext = Tiles::panels(kRows + 1);
    if (panels == 1) return Tiles::template multiply<kRows, 1>;
    if constexpr (kNext != kPanels && kRows < Tiles::kMostRows) {
      if (panels == kNext) return Tiles::template multiply<kRows, kNext>;
    }
    return Tiles::template multiply<kRows, kPanels>;
  }
}

// Writes the rows and panels of one tile to y from its finished sums.
void store_sums(const PackedJob& job, Range rows, int64_t panel, int64_t panels, float* sums) {
  const int64_t first = panel * kPanelOutputs;
  const int64_t columns = std::min(panels * kPanelOutputs, job.weight.outputs - first);
  for (int64_t row = rows.begin; row < rows.end; ++row, sums += panels * kPanelOutputs) {
    if (job.bias.data != nullptr) {
      float room[4 * kPanelOutputs];  // at most 4 panels
      add_floats(sums, widened(job.bias, first, columns, room), columns);
    }
    const int64_t at = row * job.weight.outputs + first;
    if (job.y.dtype == DType::f32 && !job.y.add)  // a few vectors: a call would cost more
      map(
          static_cast<float*>(job.y.data) + at, columns, [](Vector v) HWY_ATTR { return v; }, sums);
    else
      narrow_into(job.y, at, columns, sums);
  }
}

// A tile that alone uses the weights prefetches its own, this number of bytes ahead: as many as a
// core reads in the memory latency of 100 ns.
constexpr int64_t kNear = 1024;

// Returns what a tile prefetches while the kernel `Running` computes it; `Tiles` is the form of the
// stored weights. A tile alone prefetches its own weights, and at the end of its panels the
// beginning of the next ones. Tiles that share a block of weights each prefetch a part of the next
// block, a little with each line, so that memory stays busy but not overloaded.
template <class Tiles, class Running>
Ahead ahead_of(const PackedJob& job, int64_t panel, int64_t panels, Range k, Range tiles,
               int64_t tile) {
  const bool alone = tiles.size() == 1;
  const int64_t bytes = k.size() * Tiles::kPanelBytes;
  const int64_t lines = ceil_div(k.size() * Running::kPanelBytes, kLineBytes);
  const int64_t part = ceil_div(bytes, tiles.size());
  Ahead ahead = {};
  ahead.step = alone ? kLineBytes : ceil_div(part, std::max<int64_t>(1, lines));
  for (int64_t p = 0; p < panels; ++p) {
    const uint8_t* here = job.panel(panel + p) + k.begin * Tiles::kPanelBytes;
    const uint8_t* next = k.end < job.depth ? here + bytes : job.panel(panel + panels + p);
    if (alone)
      ahead.at[p] = k.end < job.depth ? here + kNear : next;
    else
      ahead.at[p] = next + (tile - tiles.begin) * part;
  }
  return ahead;
}

// If at least this many tiles share a block of bf16 weights, the block is widened once for all of
// them.
constexpr int64_t kManyTiles = 4;

// Returns a job whose panels are the widened blocks [panels][Tiles::kBlock][16] of `job`.
template <class Tiles>
PackedJob widened_job(const PackedJob& job, int64_t panel, int64_t panels, Range k, float* blocks) {
  constexpr int64_t kBlockFloats = Tiles::kBlock * kPanelOutputs;
  for (int64_t p = 0; p < panels; ++p)
    widen_panel(job.panel(panel + p), k, blocks + p * kBlockFloats);
  PackedJob wide = job;
  wide.weight.panels = blocks;
  wide.panel_size = kBlockFloats * static_cast<int64_t>(sizeof(float));
  wide.first_k = k.begin;
  return wide;
}

template <class Tiles>
void multiply_panels(const PackedJob& job, Range tiles, int64_t panel, int64_t panels,
                     float* carried) {
  const int64_t K = job.depth, first = job.rows_of(tiles.begin).begin;
  const bool widens = std::is_same_v<Tiles, Bf16Tiles> && tiles.size() >= kManyTiles;
  float* blocks =
      widens ? scratch(ScratchUse::packed_b, 4 * Tiles::kBlock * kPanelOutputs) : nullptr;
  // Blocks have nearly equal sizes and consist of complete groups.
  constexpr int64_t kUnit = 64;
  const int64_t blocks_of_k = std::max<int64_t>(1, ceil_div(K, Tiles::kBlock));
  const int64_t block = ceil_div(K, blocks_of_k * kUnit) * kUnit;
  // Where a tile alone begins to prefetch the next panels.
  const int64_t end_of_panels = (K - kNear / Tiles::kPanelBytes) / kUnit * kUnit;
  int64_t begin = 0;
  do {  // at least once: if K is 0, y is still set to the bias
    Range k = {begin, std::min(K, begin + block)};
    if (k.end == K && tiles.size() == 1 && end_of_panels > begin) k.end = end_of_panels;
    const PackedJob wide = widens ? widened_job<Tiles>(job, panel, panels, k, blocks) : job;
    for (int64_t t = tiles.begin; t < tiles.end; ++t) {
      const Range rows = job.rows_of(t);
      float* sums = carried + (rows.begin - first) * panels * kPanelOutputs;
      if (widens)
        tile_of<F32Tiles>(rows.size(), panels)(
            wide, rows, 0, k, sums, ahead_of<Tiles, F32Tiles>(job, panel, panels, k, tiles, t));
      else
        tile_of<Tiles>(rows.size(), panels)(
            job, rows, panel, k, sums, ahead_of<Tiles, Tiles>(job, panel, panels, k, tiles, t));
      if (k.end == K) store_sums(job, rows, panel, panels, sums);
    }
    begin = k.end;
  } while (begin < K);
}

template <class Tiles>
void multiply_share(const PackedJob& job, Range tiles, Range panels) {
  // All tiles take the same number of panels: that of the largest tile.
  const int64_t most = Tiles::panels(static_cast<int>(ceil_div(job.rows, job.tiles)));
  for (int64_t t = tiles.begin; t < tiles.end; t += kCarriedTiles) {
    const Range part = {t, std::min(tiles.end, t + kCarriedTiles)};
    float* carried =
        scratch(ScratchUse::carry, part.size() * Tiles::kMostRows * most * kPanelOutputs);
    for (int64_t panel = panels.begin, count = 0; panel < panels.end; panel += count) {
      count = panel + most <= panels.end ? most : 1;
      multiply_panels<Tiles>(job, part, panel, count, carried);
    }
  }
}

// Divides the panels of all products, as one list, among the threads; if there are many pieces, the
// panels of a tile stay together.
template <class Tiles>
void multiply_packed(const PackedJob& job, std::span<const PackedProduct> products) {
  int64_t panels = 0, outputs = 0;
  for (const PackedProduct& product : products) {
    panels += panels_of(product.weight);
    outputs += product.weight.outputs;
  }
  const int64_t work = job.rows * outputs * std::max<int64_t>(1, job.weight.width);
  const int64_t threads = std::min<int64_t>(thread_count(), work / kThreadGrain + 1);
  const int64_t pieces = std::clamp<int64_t>(work / (threads * kPieceWork), 1, kMostPieces);
  const int64_t together = Tiles::panels(static_cast<int>(ceil_div(job.rows, job.tiles)));
  const int64_t unit = pieces > 1 && panels >= threads * together ? together : 1;
  const int64_t units = ceil_div(panels, unit);
  const int64_t tile_shares = std::clamp<int64_t>(threads / panels, 1, job.tiles);
  const int64_t panel_shares = std::min(units, threads * pieces / tile_shares);
  parallel_tasks(tile_shares * panel_shares, [&](int64_t share) HWY_ATTR {
    const int64_t t = share / panel_shares, p = share % panel_shares;
    const Range tiles = {job.tiles * t / tile_shares, job.tiles * (t + 1) / tile_shares};
    const Range mine = {units * p / panel_shares * unit,
                        std::min(panels, units * (p + 1) / panel_shares * unit)};
    int64_t first = 0;
    for (const PackedProduct& product : products) {
      const int64_t count = panels_of(product.weight);
      const Range part = {std::max<int64_t>(mine.begin - first, 0),
                          std::min(mine.end - first, count)};
      if (part.begin < part.end) multiply_share<Tiles>(job.of(product), tiles, part);
      first += count;
    }
    if constexpr (requires { Tiles::finish(); }) Tiles::finish();
  });
}

template <int64_t kGroup>
void quantize_rows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  const int64_t cells = job.rows * job.groups;
  job.stride = job.groups * kGroup;
  auto* bytes =
      reinterpret_cast<int8_t*>(scratch(ScratchUse::packed_a, ceil_div(job.rows * job.stride, 4)));
  float* scales = scratch(ScratchUse::scales, cells);
  auto* corrections = reinterpret_cast<int32_t*>(scratch(ScratchUse::corrections, cells));
  const int32_t offset = job.weight.format == WeightFormat::int8 ? 128 : 8;
  // Threads share the groups, not the rows: the rows of a tile lie in the same cache lines.
  constexpr int64_t kGrain = 4096;  // numbers, about 2 microseconds
  const int64_t grain = kGrain / (job.rows * kGroup) + 1;
  parallel_for(job.groups, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t first = begin * kGroup, count = std::min(K, end * kGroup) - first;
    float* room = x.dtype == DType::f32 ? nullptr : scratch(ScratchUse::packed_b, count);
    for (int64_t t = 0; t < job.tiles; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = tile.begin; r < tile.end; ++r) {
        round_row<kGroup>(widened(x, r * K + first, count, room), {begin, end}, K, offset,
                          r - tile.begin, tile.size(), bytes + tile.begin * job.stride,
                          scales + tile.begin * job.groups, corrections + tile.begin * job.groups);
      }
    }
  });
  job.bytes = bytes;
  job.scales = scales;
  job.corrections = corrections;
}

// Like quantize_rows, with one scale for each row. Threads share the tiles. AMX's tiles read the
// integers as [rows][depth].
void quantize_whole_rows(PackedJob& job, In x, bool for_matrix_tiles) {
  const int64_t K = job.weight.width;
  job.depth = job.stride = job.weight.group;
  auto* bytes =
      reinterpret_cast<int8_t*>(scratch(ScratchUse::packed_a, ceil_div(job.rows * job.stride, 4)));
  float* scales = scratch(ScratchUse::scales, job.rows);
  auto* corrections = reinterpret_cast<int32_t*>(scratch(ScratchUse::corrections, job.rows));
  parallel_for(job.tiles, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    float* room = scratch(ScratchUse::packed_b, job.stride);
    for (int64_t t = begin; t < end; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = tile.begin; r < tile.end; ++r) {
        const float* row = widened(x, r * K, K, room);
        if (K < job.stride) {
          if (row != room) std::copy_n(row, K, room);
          std::fill(room + K, room + job.stride, 0.0f);
          row = room;
        }
        int8_t* to = for_matrix_tiles ? bytes + r * job.stride
                                      : bytes + tile.begin * job.stride + (r - tile.begin) * 4;
        int32_t sum;
        scales[r] = round_whole_row(row, job.stride, for_matrix_tiles ? 1 : tile.size(), to, sum);
        corrections[r] = -128 * sum;
      }
    }
  });
  job.bytes = bytes;
  job.scales = scales;
  job.corrections = corrections;
}

// Sets `row` to row r of x in bf16, padded with zeros to job.depth.
HWY_INLINE void narrow_row(const PackedJob& job, In x, int64_t r, bf16* row) {
  const int64_t K = job.weight.width;
  if (x.dtype == DType::f32)
    narrow_all(row, static_cast<const float*>(x.data) + r * K, K);
  else
    std::copy_n(static_cast<const bf16*>(x.data) + r * K, K, row);
  std::fill(row + K, row + job.depth, bf16{});
}

bf16* room_for_row(const PackedJob& job) {
  const int64_t words = job.depth / 2;
  return reinterpret_cast<bf16*>(scratch(ScratchUse::packed_b, words));
}

uint32_t* room_for_pairs(const PackedJob& job) {
  const int64_t words = job.rows * job.depth / 2;
  return reinterpret_cast<uint32_t*>(scratch(ScratchUse::packed_a, words));
}

// Returns the number of rows that is worth another thread: copying 4096 numbers takes about a
// microsecond.
HWY_INLINE int64_t rows_worth_a_thread(const PackedJob& job) { return 4096 / (job.depth + 1) + 1; }

// Loads words of two bf16, the earlier k in the upper half.
HWY_INLINE WordVector load_pairs(const bf16* row, int64_t word) {
  const hn::Repartition<uint16_t, Floats> halves;
  return swap_halves(hn::BitCast(Words(), hn::LoadU(halves, &row[2 * word].bits)));
}

// Stores x as pairs: [depth/2][R] for each tile of R rows.
void pair_rows(PackedJob& job, In x) {
  job.depth = round_up(job.weight.width, 32);
  job.stride = job.depth / 2;
  uint32_t* pairs = room_for_pairs(job);
  parallel_for(job.tiles, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    bf16* row = room_for_row(job);
    for (int64_t t = begin; t < end; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = tile.begin; r < tile.end; ++r) {
        narrow_row(job, x, r, row);
        uint32_t* to = pairs + tile.begin * job.stride + (r - tile.begin);
        for (int64_t i = 0; i < job.stride; ++i, to += tile.size())
          *to = static_cast<uint32_t>(row[2 * i].bits) << 16 | row[2 * i + 1].bits;
      }
    }
  });
  job.pairs = pairs;
}

// Stores x as pairs [rows][depth/2], as AMX's tiles read them.
void pair_whole_rows(PackedJob& job, In x) {
  job.depth = round_up(job.weight.width, kTileDepth);
  job.stride = job.depth / 2;
  uint32_t* pairs = room_for_pairs(job);
  parallel_for(job.rows, rows_worth_a_thread(job), [&](int64_t begin, int64_t end) HWY_ATTR {
    bf16* row = room_for_row(job);
    for (int64_t r = begin; r < end; ++r) {
      narrow_row(job, x, r, row);
      for (int64_t i = 0; i < job.stride; i += kLanes)
        hn::StoreU(load_pairs(row, i), Words(), pairs + r * job.stride + i);
    }
  });
  job.pairs = pairs;
}

// Prepares x for f32 weights: widens bf16 rows to fp32.
void widen_rows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  job.depth = job.stride = K;
  job.floats = static_cast<const float*>(x.data);
  if (x.dtype == DType::f32) return;
  float* floats = scratch(ScratchUse::packed_a, job.rows * K);
  parallel_for(job.rows, FloatTiles::kMostRows, [&](int64_t begin, int64_t end) HWY_ATTR {
    widen_all(floats + begin * K, static_cast<const bf16*>(x.data) + begin * K, (end - begin) * K);
  });
  job.floats = floats;
}

// Prepares x for bf16 weights that are widened to fp32: rounds it to bf16, the operand type of the
// bf16 instructions of other CPUs.
void round_rows(PackedJob& job, In x) {
  job.depth = job.stride = round_up(job.weight.width, 32);
  const int64_t size = job.rows * job.stride;
  float* floats = scratch(ScratchUse::packed_a, size);
  parallel_for(job.rows, rows_worth_a_thread(job), [&](int64_t begin, int64_t end) HWY_ATTR {
    bf16* row = room_for_row(job);
    for (int64_t r = begin; r < end; ++r) {
      narrow_row(job, x, r, row);
      widen_all(floats + r * job.stride, row, job.stride);
    }
  });
  job.floats = floats;
}

void MultiplyBf16(Bf16Products how, PackedJob& job, std::span<const PackedProduct> products, In x) {
  switch (how) {
    case Bf16Products::widened:
      round_rows(job, x);
      return multiply_packed<Bf16Tiles>(job, products);
    case Bf16Products::pairs:
      pair_rows(job, x);
      return multiply_packed<Bf16PairTiles<NativePairs>>(job, products);
    case Bf16Products::model_pairs:
      pair_rows(job, x);
      return multiply_packed<Bf16PairTiles<ModelPairs>>(job, products);
    case Bf16Products::tiles:
    case Bf16Products::model_tiles:
      if (job.rows <= Bf16FewRowTiles::kMostRows) {
        round_rows(job, x);
        return multiply_packed<Bf16FewRowTiles>(job, products);
      }
      pair_whole_rows(job, x);
      return how == Bf16Products::tiles
                 ? multiply_packed<Bf16MatrixTiles<NativeTiles>>(job, products)
                 : multiply_packed<Bf16MatrixTiles<ModelTiles>>(job, products);
  }
}

bool has_matrix_tiles(Bf16Products how) {
  return how == Bf16Products::tiles || how == Bf16Products::model_tiles;
}

// Whether the integers of a whole row have one scale; a row of at most kMostGroup is one group.
bool has_whole_rows(const PackedMatrix& weight) { return weight.group > kMostGroup; }

// With fewer rows, most of a tile would be empty.
constexpr int64_t kFewestTileRows = 5;

bool uses_byte_tiles(Bf16Products how, const PackedMatrix& weight, int64_t rows) {
  return has_matrix_tiles(how) && has_whole_rows(weight) && rows >= kFewestTileRows;
}

// Returns the largest number of rows of a tile.
int most_rows_of(Bf16Products how, const PackedMatrix& weight, int64_t rows) {
  if (uses_byte_tiles(how, weight, rows)) return ByteMatrixTiles<NativeTiles>::kMostRows;
  if (is_quantized(weight.format)) return WholeTiles::kMostRows;
  return weight.format == WeightFormat::bf16 && has_matrix_tiles(how)
             ? Bf16MatrixTiles<NativeTiles>::kMostRows
             : FloatTiles::kMostRows;
}

template <template <WeightFormat> class Dot>
void multiply_quantized(const PackedJob& job, std::span<const PackedProduct> products) {
  if (has_whole_rows(job.weight))
    multiply_packed<RowTiles<Dot>>(job, products);
  else if (job.weight.format == WeightFormat::int8)
    multiply_packed<QuantizedTiles<WeightFormat::int8, Dot>>(job, products);
  else
    multiply_packed<QuantizedTiles<WeightFormat::int4, Dot>>(job, products);
}

void packed_linear_on(Bf16Products how, std::span<const PackedProduct> products, In x,
                      int64_t rows) {
  const PackedMatrix& weight = products.front().weight;  // all share format, width and group
  PackedJob job = {};
  job.weight = weight;
  job.rows = rows;
  job.depth = weight.width;
  job.tiles = ceil_div(rows, most_rows_of(how, weight, rows));
  job.panel_size = panel_bytes(weight);
  if (weight.format == WeightFormat::bf16) return MultiplyBf16(how, job, products, x);
  if (weight.format == WeightFormat::f32) {
    widen_rows(job, x);
    return multiply_packed<F32Tiles>(job, products);
  }
  job.groups = groups_of(weight);
  if (has_whole_rows(weight))
    quantize_whole_rows(job, x, uses_byte_tiles(how, weight, rows));
  else if (weight.group == 32)
    quantize_rows<32>(job, x);
  else
    quantize_rows<kMostGroup>(job, x);
  if (uses_byte_tiles(how, weight, rows)) {
    return how == Bf16Products::tiles ? multiply_packed<ByteMatrixTiles<NativeTiles>>(job, products)
                                      : multiply_packed<ByteMatrixTiles<ModelTiles>>(job, products);
  }
#if HWY_TARGET == HWY_AVX2
  switch (byte_products()) {
    case ByteProducts::pairs: return multiply_quantized<PairsDot>(job, products);
    case ByteProducts::vnni: return multiply_quantized<VnniDot>(job, products);
    case ByteProducts::model_vnni: return multiply_quantized<ModelVnniDot>(job, products);
  }
#else
  multiply_quantized<VnniDot>(job, products);
#endif
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(packed_linear_on);

void packed_linear_with(Bf16Products how, std::span<const PackedProduct> products, In x,
                        int64_t rows) {
  int64_t outputs = 0;
  for (const PackedProduct& product : products) {
    check_stored_types(product.y, x);
    if (product.bias.data) check_stored(product.bias.dtype);
    outputs += product.weight.outputs;
  }
  if (rows == 0 || outputs == 0) return;
  const bool bf16_weights = products.front().weight.format == WeightFormat::bf16;
  const FloatMode mode(bf16_weights ? kFlushToZero : FloatMode::current());
  // Without VNNI, integers are multiplied 256 bits at a time, even with AVX-512.
  if (is_quantized(products.front().weight.format) && byte_products() == ByteProducts::pairs)
    return N_AVX2::packed_linear_on(how, products, x, rows);
  HWY_DYNAMIC_DISPATCH(packed_linear_on)(how, products, x, rows);
}

void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  packed_linear_with(bf16_products(), products, x, rows);
}

}  // namespace fovea::cpu
#endif
