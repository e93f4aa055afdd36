// Matrix products with panels of bf16 or int8 weights in AMX tile registers (see
// kernels/cpu/tiles-inl.h); included once per target.

#if defined(FOVEA_PACKED_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_TILES_INL_H_
#undef FOVEA_PACKED_TILES_INL_H_
#else
#define FOVEA_PACKED_TILES_INL_H_
#endif

#include "kernels/cpu/tiles-inl.h"
#include "kernels/cpu/whole-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// The operands of a product of tiles, as words of two or four numbers.
struct Bf16Operands {
  static constexpr int64_t kPerWord = 2;
  static const uint32_t* words(const PackedJob& job) { return job.pairs; }
  static int64_t stride(const PackedJob& job) { return job.stride; }
  template <int kSum, int kA, int kB, class Tiles>
  static HWY_INLINE void multiply_add(Tiles& tiles) {
    tiles.template multiply_add<kSum, kA, kB>();
  }
  static void finish(const PackedJob&, Range, int64_t, int64_t, float*) {}
};

// int8 weights with one scale for each output.
struct ByteOperands {
  static constexpr int64_t kPerWord = 4;
  static const uint32_t* words(const PackedJob& job) {
    return reinterpret_cast<const uint32_t*>(job.bytes);
  }
  static int64_t stride(const PackedJob& job) { return job.stride / kPerWord; }
  template <int kSum, int kA, int kB, class Tiles>
  static HWY_INLINE void multiply_add(Tiles& tiles) {
    tiles.template multiply_add_bytes<kSum, kA, kB>();
  }
  // Converts the finished integer sums to floats.
  static void finish(const PackedJob& job, Range rows, int64_t panel, int64_t panels, float* sums) {
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t p = 0; p < panels; ++p) {
        for (int64_t lane = 0; lane < kPanelOutputs; lane += kLanes, sums += kLanes) {
          const Vector scale = widen_scales(job.panel_scales(panel + p) + lane);
          const WholeVector whole =
              hn::Add(hn::Load(Wholes(), reinterpret_cast<const int32_t*>(sums)),
                      hn::Set(Wholes(), job.corrections[row]));
          hn::Store(scaled(whole, scale, job.scales[row]), Floats(), sums);
        }
      }
    }
  }
};

// Multiplies 16 rows by four panels, or 32 rows by two. Each product waits for the previous product
// of its sum; four sums in flight hide that latency. The weights of a panel take 1 KB for a step of
// k.
template <class Tiles, class Operands>
struct MatrixTiles {
  static constexpr int kMostRows = 2 * static_cast<int>(kTileSide);
  static constexpr int panels(int rows) { return rows <= kTileSide ? 4 : 2; }
  static constexpr int64_t kPanelBytes = kPanelOutputs * 4 / Operands::kPerWord;
  // Two panels and 32 rows of x, 256 KB at most, stay in L2.
  static constexpr int64_t kBlock = 1024 * Operands::kPerWord;

  static TileRegisters<Tiles>& registers() {
    thread_local TileRegisters<Tiles> registers;
    return registers;
  }
  static void finish() { registers().release(); }

  // Returns the function for a tile of `rows` rows and 1, 2 or (up to 16 rows) 4 panels.
  static auto function_of(int64_t rows, int64_t panels) {
    if (rows > kTileSide) return panels == 1 ? multiply<true, 1> : multiply<true, 2>;
    return panels == 1 ? multiply<false, 1> : panels == 2 ? multiply<false, 2> : multiply<false, 4>;
  }

 private:
  template <bool kTwo, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* sums, const Ahead& ahead) {
    auto& tiles = registers();
    tiles.configure_rows(rows.size());
    constexpr size_t kStride = kPanels * kPanelOutputs * sizeof(float);
    float* second = sums + kTileSide * kPanels * kPanelOutputs;
    each_panel<kPanels>([&]<int p>() HWY_ATTR {
      if (k.begin == 0) {
        tiles.template zero<p>();
        if constexpr (kTwo) tiles.template zero<2 + p>();
      } else {
        tiles.template load<p>(sums + p * kPanelOutputs, kStride);
        if constexpr (kTwo) tiles.template load<2 + p>(second + p * kPanelOutputs, kStride);
      }
    });
    const int64_t words = Operands::stride(job);
    const auto stride = static_cast<size_t>(words) * sizeof(uint32_t);
    const uint32_t* x = Operands::words(job) + rows.begin * words + k.begin / Operands::kPerWord;
    const uint8_t* w = job.panel(panel) + k.begin * kPanelBytes;
    constexpr int64_t kLines = kTileBytes / kLineBytes;
    for (int64_t step = 0; step < k.size() / (kTileSide * Operands::kPerWord); ++step) {
      tiles.template load<4>(x + step * kTileSide, stride);
      if constexpr (kTwo) tiles.template load<5>(x + (words + step) * kTileSide, stride);
      each_panel<kPanels>([&]<int p>() HWY_ATTR {
        constexpr int kWeights = 6 + p % 2;
        tiles.template load<kWeights>(w + p * job.panel_size + step * kTileBytes, kLineBytes);
        for (int64_t line = 0; line < kLines; ++line) ahead.ask(p, step * kLines + line);
        Operands::template multiply_add<p, 4, kWeights>(tiles);
        if constexpr (kTwo) Operands::template multiply_add<2 + p, 5, kWeights>(tiles);
      });
    }
    each_panel<kPanels>([&]<int p>() HWY_ATTR {
      tiles.template store<p>(sums + p * kPanelOutputs, kStride);
      if constexpr (kTwo) tiles.template store<2 + p>(second + p * kPanelOutputs, kStride);
    });
    if (k.end == job.depth) Operands::finish(job, rows, panel, kPanels, sums);
  }

  template <int kPanels, class Body>
  static HWY_INLINE void each_panel(const Body& body) {
    body.template operator()<0>();
    if constexpr (kPanels > 1) body.template operator()<1>();
    if constexpr (kPanels > 2) {
      body.template operator()<2>();
      body.template operator()<3>();
    }
  }
};

template <class Tiles>
using Bf16MatrixTiles = MatrixTiles<Tiles, Bf16Operands>;
template <class Tiles>
using ByteMatrixTiles = MatrixTiles<Tiles, ByteOperands>;

// Computes the sums of Bf16MatrixTiles for few rows, without AMX's registers: loading those costs
// more than it saves. Widens the weights.
struct Bf16FewRowTiles {
  static constexpr int kMostRows = 2;
  static constexpr int panels(int) { return kLanes == 16 ? 4 : 1; }
  static constexpr int64_t kBlock = FloatTiles::kBlock;
  static constexpr int64_t kPanelBytes = 2 * kPanelOutputs;

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* sums, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    Sums<kRows, kVectors> sum, earlier, later;  // earlier and later: for the two k of a pair
    sum.load(sums, k.begin == 0);
    const float* x = job.floats + rows.begin * job.stride + k.begin;
    const uint32_t* w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p)
      w[p] = reinterpret_cast<const uint32_t*>(job.panel(panel + p)) + k.begin / 2 * kPanelOutputs;
    for (int64_t step = 0; step < k.size(); step += kTileDepth) {
      earlier.load(nullptr, true);
      later.load(nullptr, true);
      for (int64_t i = step; i < step + kTileDepth; i += 2) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const uint32_t* from = w[v / kPanelVectors] + i / 2 * kPanelOutputs;
          const WordVector pairs = hn::Load(Words(), from + v % kPanelVectors * kLanes);
          if (v % kPanelVectors == 0) ahead.ask(v / kPanelVectors, i / 2);
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const float* factors = x + r * job.stride + i;
            earlier.at[r][v] = hn::MulAdd(all(factors[0]), upper_of(pairs), earlier.at[r][v]);
            later.at[r][v] = hn::MulAdd(all(factors[1]), lower_of(pairs), later.at[r][v]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          sum.at[r][v] = hn::Add(sum.at[r][v], hn::Add(earlier.at[r][v], later.at[r][v]));
    }
    sum.store(sums);
  }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
