// Division of a product with packed weights into tiles; included once per target.
//
// Threads share the panels, and also the rows if there are fewer panels than threads. Each thread
// loops over blocks of panels, then blocks of k, then all rows, so that weights are read from
// memory once for up to kCarriedTiles tiles of rows. Blocking does not affect results: sums are
// kept unrounded between blocks.

#if defined(FOVEA_PACKED_SCHEDULE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_SCHEDULE_INL_H_
#undef FOVEA_PACKED_SCHEDULE_INL_H_
#else
#define FOVEA_PACKED_SCHEDULE_INL_H_
#endif

#include <algorithm>
#include <optional>

#include "base/threads.h"
#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/float-inl.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/stored.h"

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

// What the schedule needs to know of a type of tiles. The schedule is one function for all types:
// as a template, it was a third of the code of the block types.
struct TileType {
  int64_t most_rows;
  int64_t most_together;  // rows of a tile that takes its panels together, not one by one
  int64_t block;          // columns of W at a time
  int64_t panel_bytes;    // for each k
  int (*panels)(int rows);
  Tile (*tile_of)(int64_t rows, int64_t panels);  // null if blocks of panels are always widened
  void (*finish)();                               // called by each thread at its end, or null
  // Blocks of panels may be converted once for all tiles that share them: if widens(tiles),
  // widened() returns a job with the converted panels, for tiles of the type `wide`, else null.
  const TileType* wide;
  bool (*widens)(int64_t tiles);
  PackedJob (*widened)(const PackedJob& job, int64_t panel, int64_t panels, Range k);
};

template <class Tiles>
constexpr TileType tile_type();
template <class Tiles>
inline constexpr TileType kTileType = tile_type<Tiles>();

template <class Tiles>
constexpr TileType tile_type() {
  TileType type = {.most_rows = Tiles::kMostRows,
                   .most_together = Tiles::kMostRows,
                   .block = Tiles::kBlock,
                   .panel_bytes = Tiles::kPanelBytes,
                   .panels = Tiles::panels,
                   .tile_of = nullptr,
                   .finish = nullptr,
                   .wide = nullptr,
                   .widens = nullptr,
                   .widened = nullptr};
  if constexpr (requires { Tiles::kMostTogether; }) type.most_together = Tiles::kMostTogether;
  if constexpr (!requires { Tiles::kOnlyWide; }) type.tile_of = tile_of<Tiles>;
  if constexpr (requires { Tiles::finish(); }) type.finish = Tiles::finish;
  if constexpr (requires { typename Tiles::Wide; }) {
    type.wide = &kTileType<typename Tiles::Wide>;
    type.widens = Tiles::widens;
    type.widened = Tiles::widened;
  }
  return type;
}

HWY_INLINE Vector load_stored(const float* x) { return hn::LoadU(Floats(), x); }
HWY_INLINE Vector load_stored(const bf16* x) {
  return widen_half(hn::LoadU(hn::Rebind<uint16_t, Floats>(), &x->bits));
}
HWY_INLINE void store_stored(Vector v, float* y) { hn::StoreU(v, Floats(), y); }
HWY_INLINE void store_stored(Vector v, bf16* y) {
  hn::StoreU(narrow_half(v), hn::Rebind<uint16_t, Floats>(), &y->bits);
}

// y[0, columns) = f(sums + bias) + added for one row of a tile. sums and bias are complete vectors;
// bias and `added` may be null.
template <class Stored, class F>
HWY_INLINE void store_sums_of_row(const float* sums, const float* bias, const F& f,
                                  const Stored* added, Stored* y, int64_t columns) {
  const Stored* const others = added != nullptr ? added : y;
  const auto store = [&](int64_t i, const Stored* other, Stored* to) HWY_ATTR {
    Vector v = hn::Load(Floats(), sums + i);
    if (bias != nullptr) v = hn::Add(v, hn::LoadU(Floats(), bias + i));
    v = f(v);
    store_stored(added != nullptr ? hn::Add(v, load_stored(other)) : v, to);
  };
  int64_t i = 0;
  for (; i + kLanes <= columns; i += kLanes) store(i, others + i, y + i);
  if (i == columns) return;
  Stored last[kLanes] = {};
  if (added != nullptr) std::copy(others + i, others + columns, last);
  store(i, last, last);
  std::copy_n(last, columns - i, y + i);
}

// Writes the rows and panels of one tile to y from its finished sums.
template <class Stored, class F>
void store_sums_by(const PackedJob& job, Range rows, int64_t panel, int64_t panels,
                   const float* sums, const F& f) {
  const int64_t first = panel * kPanelOutputs, outputs = job.weight.outputs;
  const int64_t columns = std::min(panels * kPanelOutputs, outputs - first);
  float room[4 * kPanelOutputs] = {};  // at most 4 panels
  const float* bias = job.bias.data == nullptr ? nullptr : widened(job.bias, first, columns, room);
  if (bias != nullptr && bias != room && columns % kLanes != 0) {
    std::copy_n(bias, columns, room);
    bias = room;
  }
  const bool adds = job.added.data != nullptr;
  for (int64_t row = rows.begin; row < rows.end; ++row, sums += panels * kPanelOutputs) {
    const int64_t at = row * outputs + first;
    store_sums_of_row(sums, bias, f,
                      adds ? static_cast<const Stored*>(job.added.data) + at : nullptr,
                      static_cast<Stored*>(job.y.data) + at, columns);
  }
}

template <class Stored>
void store_sums_as(const PackedJob& job, Range rows, int64_t panel, int64_t panels,
                   const float* sums) {
  if (!job.activation) {
    return store_sums_by<Stored>(job, rows, panel, panels, sums,
                                 [](Vector v) HWY_ATTR { return v; });
  }
  with_function(*job.activation, [&](auto function) HWY_ATTR {
    using F = typename decltype(function)::type;
    store_sums_by<Stored>(job, rows, panel, panels, sums,
                          [](Vector v) HWY_ATTR { return F::value(v); });
  });
}

inline void store_sums(const PackedJob& job, Range rows, int64_t panel, int64_t panels,
                       const float* sums) {
  if (job.y.dtype == DType::f32)
    store_sums_as<float>(job, rows, panel, panels, sums);
  else
    store_sums_as<bf16>(job, rows, panel, panels, sums);
}

HWY_INLINE void prefetch_for_writing(const char* line) {
#if HWY_ARCH_X86
  __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

// Prefetches, for writing, what a tile writes to y: otherwise the stores of its sums wait for
// memory.
inline void prefetch_results(const PackedJob& job, Range rows, int64_t panel, int64_t panels) {
  const int64_t first = panel * kPanelOutputs, outputs = job.weight.outputs;
  const int64_t columns = std::min(panels * kPanelOutputs, outputs - first);
  const int64_t size = job.y.dtype == DType::f32 ? 4 : 2;
  auto* const y = static_cast<char*>(job.y.data);
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    char* const begin = y + (row * outputs + first) * size;
    for (char* line = begin; line < begin + columns * size; line += kLineBytes)
      prefetch_for_writing(line);
  }
}

// A tile that alone uses the weights prefetches its own, this number of bytes ahead: as many as a
// core reads in the memory latency of 100 ns.
constexpr int64_t kNear = 1024;

// One panel after the other is one stream, which the hardware prefetches better.
inline int64_t near_of(const TileType& type, int64_t rows, int64_t panels) {
  return rows > type.most_together || panels == 1 ? 0 : kNear;
}

// Returns what a tile prefetches while a kernel of type `running` computes it; `type` is that of
// the stored weights. A tile alone prefetches its own weights, and at the end of its panels the
// beginning of the next ones. Tiles that share a block of weights, or whose block was widened
// before, each prefetch a part of the next block, a little with each line, so that memory stays
// busy but not overloaded.
inline Ahead ahead_of(const TileType& type, const TileType& running, const PackedJob& job,
                      int64_t panel, int64_t panels, Range k, Range tiles, int64_t tile,
                      bool widened) {
  const bool alone = tiles.size() == 1 && !widened;
  const int64_t near = near_of(type, job.rows_of(tile).size(), panels);
  const int64_t bytes = k.size() * type.panel_bytes;
  const int64_t lines = ceil_div(k.size() * running.panel_bytes, kLineBytes);
  const int64_t part = ceil_div(bytes, tiles.size());
  Ahead ahead = {};
  ahead.step = alone ? kLineBytes : ceil_div(part, std::max<int64_t>(1, lines));
  for (int64_t p = 0; p < panels; ++p) {
    const uint8_t* here = job.panel(panel + p) + k.begin * type.panel_bytes;
    const uint8_t* next = k.end < job.depth ? here + bytes : job.panel(panel + panels + p);
    if (alone)
      ahead.at[p] = k.end < job.depth ? here + near : next;
    else
      ahead.at[p] = next + (tile - tiles.begin) * part;
  }
  return ahead;
}

// Multiplies one tile. `wide` is the job whose panels type.widened() made, or null.
inline void multiply_tile(const TileType& type, const PackedJob& job, const PackedJob* wide,
                          Range tiles, int64_t t, int64_t panel, int64_t panels, Range k,
                          float* sums) {
  const Range rows = job.rows_of(t);
  const TileType& running = wide != nullptr ? *type.wide : type;
  const Ahead ahead = ahead_of(type, running, job, panel, panels, k, tiles, t, wide != nullptr);
  const Tile multiply = running.tile_of(rows.size(), panels);
  if (wide != nullptr)
    multiply(*wide, rows, 0, k, sums, ahead);
  else
    multiply(job, rows, panel, k, sums, ahead);
}

inline void multiply_panels(const TileType& type, const PackedJob& job, Range tiles, int64_t panel,
                            int64_t panels, float* carried) {
  const int64_t K = job.depth, first = job.rows_of(tiles.begin).begin;
  const bool widens = type.wide != nullptr && type.widens(tiles.size());
  std::optional<PackedJob> wide;
  // Blocks have nearly equal sizes and consist of complete groups.
  constexpr int64_t kUnit = 64;
  // A tile alone uses each weight once, so it needs no blocks.
  const bool alone = tiles.size() == 1 && !widens;
  const int64_t blocks_of_k = alone ? 1 : std::max<int64_t>(1, ceil_div(K, type.block));
  const int64_t block = ceil_div(K, blocks_of_k * kUnit) * kUnit;
  // Where a tile alone begins to prefetch the next panels.
  const int64_t near = near_of(type, job.rows_of(tiles.begin).size(), panels);
  const int64_t ahead = near == 0 ? 0 : near / type.panel_bytes;
  const int64_t end_of_panels = (K - ahead) / kUnit * kUnit;
  int64_t begin = 0;
  do {  // at least once: if K is 0, y is still set to the bias
    Range k = {begin, std::min(K, begin + block)};
    if (k.end == K && alone && end_of_panels > begin) k.end = end_of_panels;
    if (widens) wide.emplace(type.widened(job, panel, panels, k));
    for (int64_t t = tiles.begin; t < tiles.end; ++t) {
      const Range rows = job.rows_of(t);
      float* sums = carried + (rows.begin - first) * panels * kPanelOutputs;
      if (k.end == K) prefetch_results(job, rows, panel, panels);
      multiply_tile(type, job, wide ? &*wide : nullptr, tiles, t, panel, panels, k, sums);
      if (k.end == K) store_sums(job, rows, panel, panels, sums);
    }
    begin = k.end;
  } while (begin < K);
}

inline void multiply_share(const TileType& type, const PackedJob& job, Range tiles, Range panels) {
  // All tiles take the same number of panels: that of the largest tile.
  const int64_t most = type.panels(static_cast<int>(ceil_div(job.rows, job.tiles)));
  for (int64_t t = tiles.begin; t < tiles.end; t += kCarriedTiles) {
    const Range part = {t, std::min(tiles.end, t + kCarriedTiles)};
    float* carried =
        scratch(ScratchUse::carry, part.size() * type.most_rows * most * kPanelOutputs);
    for (int64_t panel = panels.begin, count = 0; panel < panels.end; panel += count) {
      count = panel + most <= panels.end ? most : 1;
      multiply_panels(type, job, part, panel, count, carried);
    }
  }
}

// Divides the panels of all products, as one list, among the threads; if there are many pieces, the
// panels of a tile stay together.
inline void multiply_packed(const TileType& type, const PackedJob& job,
                            std::span<const PackedProduct> products) {
  int64_t panels = 0, outputs = 0;
  for (const PackedProduct& product : products) {
    panels += panels_of(product.weight);
    outputs += product.weight.outputs;
  }
  const int64_t work = job.rows * outputs * std::max<int64_t>(1, job.weight.width);
  const int64_t threads = std::min<int64_t>(thread_count(), work / kThreadGrain + 1);
  const int64_t pieces = std::clamp<int64_t>(work / (threads * kPieceWork), 1, kMostPieces);
  const int64_t together = type.panels(static_cast<int>(ceil_div(job.rows, job.tiles)));
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
      if (part.begin < part.end) multiply_share(type, job.of(product), tiles, part);
      first += count;
    }
    if (type.finish != nullptr) type.finish();
  });
}

template <class Tiles>
void multiply_packed(const PackedJob& job, std::span<const PackedProduct> products) {
  multiply_packed(kTileType<Tiles>, job, products);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
