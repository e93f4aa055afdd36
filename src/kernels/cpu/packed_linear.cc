// Products with weights that were packed once. Threads share the panels, and each walks its own: a
// block of panels, a block of k, then all rows, so that weights are read from memory once whatever
// the number of rows. No blocking enters a result: sums are carried, unrounded, from block to
// block.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm_scratch.h"
#include "kernels/cpu/packed_job.h"
#include "kernels/cpu/stored.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed_linear.cc"
#include "hwy/foreach_target.h"
// After foreach_target.
#include "hwy/highway.h"
#include "kernels/cpu/packed_whole-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Fewer multiply-adds than this (about 1 microsecond's worth) are not worth waking a second thread.
constexpr int64_t kThreadGrain = 65536;
// Threads are never equally fast: of more work than this for each, they get several pieces, another
// one as they come free.
constexpr int64_t kPieceWork = 8 * kThreadGrain, kMostPieces = 8;
// Sums carried between blocks of k, at most kCarriedTiles x 8 rows x 64 floats (1 MB, in L2) a
// thread.
constexpr int64_t kCarriedTiles = 512;

HWY_INLINE int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

using Tile = void (*)(const PackedJob&, int64_t row, int64_t panel, Range k, float* sums,
                      const Ahead&);

// The tile of `rows` rows and `panels` panels: 1, or as many as go with these rows or one more.
template <class Tiles, int kRows = Tiles::kMostRows>
Tile TileOf(int64_t rows, int64_t panels) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return TileOf<Tiles, kRows - 1>(rows, panels);
  }
  constexpr int kPanels = Tiles::panels(kRows), kNext = Tiles::panels(kRows + 1);
  if (panels == 1) return Tiles::template multiply<kRows, 1>;
  if constexpr (kNext != kPanels && kRows < Tiles::kMostRows) {
    if (panels == kNext) return Tiles::template multiply<kRows, kNext>;
  }
  return Tiles::template multiply<kRows, kPanels>;
}

// y's rows and panels of one tile from its finished sums.
void StoreSums(const PackedJob& job, Range rows, int64_t panel, int64_t panels, float* sums) {
  const int64_t first = panel * kPanelOutputs;
  const int64_t columns = std::min(panels * kPanelOutputs, job.weight.outputs - first);
  for (int64_t row = rows.begin; row < rows.end; ++row, sums += panels * kPanelOutputs) {
    if (job.bias.data != nullptr) {
      float room[4 * kPanelOutputs];  // panels at most
      add_floats(sums, widened(job.bias, first, columns, room), columns);
    }
    const int64_t at = row * job.weight.outputs + first;
    if (job.y.dtype == DType::f32 && !job.y.add)  // two vectors or four: a call costs more
      map(
          static_cast<float*>(job.y.data) + at, columns, [](Vector v) HWY_ATTR { return v; }, sums);
    else
      narrow_into(job.y, at, columns, sums);
  }
}

// What a tile of Running asks of memory while it computes. One that has the weights for itself: its
// own, so far ahead as a core that shares its bandwidth with others reads in the 100 ns in which
// memory answers. Several that share a block of Tiles' weights, which only the first of them waits
// for: each its part of the block that comes next, a little with each line, so that memory never
// rests while they compute and never has more asked of it than it can answer.
template <class Tiles, class Running>
Ahead ahead_of(const PackedJob& job, int64_t panel, int64_t panels, Range k, Range tiles,
               int64_t tile) {
  constexpr int64_t kNear = 1024;  // bytes
  const bool alone = tiles.size() == 1;
  const int64_t bytes = k.size() * Tiles::kPanelBytes;
  const int64_t lines = CeilDiv(k.size() * Running::kPanelBytes, kLineBytes);
  const int64_t part = CeilDiv(bytes, tiles.size());
  Ahead ahead = {};
  ahead.step = alone ? kLineBytes : CeilDiv(part, std::max<int64_t>(1, lines));
  for (int64_t p = 0; p < panels; ++p) {
    const uint8_t* here = job.panel(panel + p) + k.begin * Tiles::kPanelBytes;
    const uint8_t* next = k.end < job.weight.width ? here + bytes : job.panel(panel + panels + p);
    ahead.at[p] = alone ? here + kNear : next + (tile - tiles.begin) * part;
  }
  return ahead;
}

// Tiles that share a block of bf16 weights: from so many on it is widened once for all of them.
constexpr int64_t kManyTiles = 4;

// A job whose panels are the widened blocks [panels][Tiles::kBlock][16] of another.
template <class Tiles>
PackedJob Widened(const PackedJob& job, int64_t panel, int64_t panels, Range k, float* blocks) {
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
void MultiplyPanels(const PackedJob& job, Range tiles, int64_t panel, int64_t panels,
                    float* carried) {
  const int64_t K = job.weight.width, first = job.rows_of(tiles.begin).begin;
  const bool widens = std::is_same_v<Tiles, Bf16Tiles> && tiles.size() >= kManyTiles;
  float* blocks =
      widens ? gemm_scratch(GemmScratch::packed_b, 4 * Tiles::kBlock * kPanelOutputs) : nullptr;
  // Blocks of the same size, as far as whole groups go.
  constexpr int64_t kUnit = 64;
  const int64_t blocks_of_k = std::max<int64_t>(1, CeilDiv(K, Tiles::kBlock));
  const int64_t block = CeilDiv(K, blocks_of_k * kUnit) * kUnit;
  int64_t begin = 0;
  do {  // at least once: without products y is still set to the bias
    const Range k = {begin, std::min(K, begin + block)};
    const PackedJob wide = widens ? Widened<Tiles>(job, panel, panels, k, blocks) : job;
    for (int64_t t = tiles.begin; t < tiles.end; ++t) {
      const Range rows = job.rows_of(t);
      float* sums = carried + (rows.begin - first) * panels * kPanelOutputs;
      if (widens)
        TileOf<F32Tiles>(rows.size(), panels)(
            wide, rows.begin, 0, k, sums,
            ahead_of<Tiles, F32Tiles>(job, panel, panels, k, tiles, t));
      else
        TileOf<Tiles>(rows.size(), panels)(job, rows.begin, panel, k, sums,
                                           ahead_of<Tiles, Tiles>(job, panel, panels, k, tiles, t));
      if (k.end == K) StoreSums(job, rows, panel, panels, sums);
    }
    begin = k.end;
  } while (begin < K);
}

template <class Tiles>
void MultiplyShare(const PackedJob& job, Range tiles, Range panels) {
  // All tiles take the same number of panels, the one that goes with the largest.
  const int64_t most = Tiles::panels(static_cast<int>(CeilDiv(job.rows, job.tiles)));
  for (int64_t t = tiles.begin; t < tiles.end; t += kCarriedTiles) {
    const Range part = {t, std::min(tiles.end, t + kCarriedTiles)};
    float* carried =
        gemm_scratch(GemmScratch::carry,
                     static_cast<size_t>(part.size() * Tiles::kMostRows * most * kPanelOutputs));
    for (int64_t panel = panels.begin, count = 0; panel < panels.end; panel += count) {
      count = panel + most <= panels.end ? most : 1;
      MultiplyPanels<Tiles>(job, part, panel, count, carried);
    }
  }
}

// The panels of all products, one behind the other, are shared out; in many pieces, those of a tile
// stay together.
template <class Tiles>
void MultiplyPacked(const PackedJob& job, std::span<const PackedProduct> products) {
  int64_t panels = 0, outputs = 0;
  for (const PackedProduct& product : products) {
    panels += panels_of(product.weight);
    outputs += product.weight.outputs;
  }
  const int64_t work = job.rows * outputs * std::max<int64_t>(1, job.weight.width);
  const int64_t threads = std::min<int64_t>(thread_count(), work / kThreadGrain + 1);
  const int64_t pieces = std::clamp<int64_t>(work / (threads * kPieceWork), 1, kMostPieces);
  const int64_t together = Tiles::panels(static_cast<int>(CeilDiv(job.rows, job.tiles)));
  const int64_t unit = pieces > 1 && panels >= threads * together ? together : 1;
  const int64_t units = CeilDiv(panels, unit);
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
      if (part.begin < part.end) MultiplyShare<Tiles>(job.of(product), tiles, part);
      first += count;
    }
  });
}

template <int64_t kGroup>
void QuantizeRows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  const auto cells = static_cast<size_t>(job.rows * job.groups);
  job.stride = job.groups * kGroup;
  auto* bytes = reinterpret_cast<int8_t*>(
      gemm_scratch(GemmScratch::packed_a, static_cast<size_t>(CeilDiv(job.rows * job.stride, 4))));
  float* scales = gemm_scratch(GemmScratch::scales, cells);
  auto* corrections = reinterpret_cast<int32_t*>(gemm_scratch(GemmScratch::corrections, cells));
  const int32_t offset = job.weight.format == WeightFormat::int8 ? 128 : 8;
  // Threads share the groups, not the rows, of which a tile's lie in the same cache lines.
  constexpr int64_t kGrain = 4096;  // numbers, about 2 microseconds' worth
  const int64_t grain = kGrain / (job.rows * kGroup) + 1;
  parallel_for(job.groups, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t first = begin * kGroup, count = std::min(K, end * kGroup) - first;
    float* room = x.dtype == DType::f32
                      ? nullptr
                      : gemm_scratch(GemmScratch::packed_b, static_cast<size_t>(count));
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

void PairRows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  job.stride = CeilDiv(K, 2);
  auto* pairs = reinterpret_cast<uint32_t*>(
      gemm_scratch(GemmScratch::packed_a, static_cast<size_t>(job.rows * job.stride)));
  parallel_for(job.tiles, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    auto* row = reinterpret_cast<bf16*>(
        gemm_scratch(GemmScratch::packed_b, static_cast<size_t>(job.stride)));
    for (int64_t t = begin; t < end; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = tile.begin; r < tile.end; ++r) {
        row[2 * job.stride - 1] = bf16{};  // of an odd K's last pair
        if (x.dtype == DType::f32)
          narrow_all(row, static_cast<const float*>(x.data) + r * K, K);
        else
          std::copy_n(static_cast<const bf16*>(x.data) + r * K, K, row);
        uint32_t* to = pairs + tile.begin * job.stride + (r - tile.begin);
        for (int64_t i = 0; i < job.stride; ++i)
          std::memcpy(to + i * tile.size(), row + 2 * i, sizeof(uint32_t));
      }
    }
  });
  job.pairs = pairs;
}

void WidenRows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  job.stride = K;
  job.floats = static_cast<const float*>(x.data);
  if (x.dtype == DType::f32) return;
  float* floats = gemm_scratch(GemmScratch::packed_a, static_cast<size_t>(job.rows * K));
  parallel_for(job.rows, FloatTiles::kMostRows, [&](int64_t begin, int64_t end) HWY_ATTR {
    widen_all(floats + begin * K, static_cast<const bf16*>(x.data) + begin * K, (end - begin) * K);
  });
  job.floats = floats;
}

void MultiplyBf16(Bf16Products how, PackedJob& job, std::span<const PackedProduct> products, In x) {
  if (how == Bf16Products::widened) {
    WidenRows(job, x);
    return MultiplyPacked<Bf16Tiles>(job, products);
  }
  PairRows(job, x);
  if (how == Bf16Products::emulated)
    return MultiplyPacked<Bf16PairTiles<EmulatedPairs>>(job, products);
  MultiplyPacked<Bf16PairTiles<NativePairs>>(job, products);
}

void PackedLinear(Bf16Products how, std::span<const PackedProduct> products, In x, int64_t rows) {
  const PackedMatrix& weight = products.front().weight;  // all have its format, width and group
  PackedJob job = {};
  job.weight = weight;
  job.rows = rows;
  const int most = is_quantized(weight.format) ? WholeTiles::kMostRows : FloatTiles::kMostRows;
  job.tiles = CeilDiv(rows, most);
  job.panel_size = panel_bytes(weight);
  if (weight.format == WeightFormat::bf16) return MultiplyBf16(how, job, products, x);
  if (weight.format == WeightFormat::f32) {
    WidenRows(job, x);
    return MultiplyPacked<F32Tiles>(job, products);
  }
  job.groups = groups_of(weight);
  if (weight.group == 32)
    QuantizeRows<32>(job, x);
  else
    QuantizeRows<64>(job, x);
  return weight.format == WeightFormat::int8
             ? MultiplyPacked<QuantizedTiles<WeightFormat::int8>>(job, products)
             : MultiplyPacked<QuantizedTiles<WeightFormat::int4>>(job, products);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(PackedLinear);

void packed_linear_with(Bf16Products how, std::span<const PackedProduct> products, In x,
                        int64_t rows) {
  int64_t outputs = 0;
  for (const PackedProduct& product : products) {
    check_stored_types(product.y, x);
    if (product.bias.data) check_stored(product.bias.dtype);
    outputs += product.weight.outputs;
  }
  if (rows == 0 || outputs == 0) return;
  // Whole numbers without VNNI are multiplied 256 bits at a time, AVX-512 or not.
  if (is_quantized(products.front().weight.format) && !__builtin_cpu_supports("avx512vnni"))
    return N_AVX2::PackedLinear(how, products, x, rows);
  HWY_DYNAMIC_DISPATCH(PackedLinear)(how, products, x, rows);
}

void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  packed_linear_with(native_bf16() ? Bf16Products::native : Bf16Products::widened, products, x,
                     rows);
}

}  // namespace fovea::cpu
#endif
