// Tiles of a product with panels of f32 or bf16 (kernels/layout/packed.h); included once per
// target.

#if defined(FOVEA_PACKED_FLOAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_FLOAT_INL_H_
#undef FOVEA_PACKED_FLOAT_INL_H_
#else
#define FOVEA_PACKED_FLOAT_INL_H_
#endif

#include <hwy/cache_control.h>

#include "kernels/cpu/bf16_pairs-inl.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

constexpr int kPanelVectors = static_cast<int>(kPanelOutputs / kLanes);

constexpr int64_t kLineBytes = 64;
// Addresses that a tile prefetches during its computation: one per panel, which advances by `step`
// bytes with each line of weights used. See ahead_of() in packed/linear.cc.
struct Ahead {
  const uint8_t* at[4];  // at most 4 panels
  int64_t step;

  HWY_INLINE void ask(int panel, int64_t line) const { hwy::Prefetch(at[panel] + line * step); }
};

// The running sums of a tile, in registers: kRows rows times kVectors vectors of outputs.
template <int kRows, int kVectors>
struct Sums {
  Vector at[kRows][kVectors];

  // In memory, a row takes `stride`.
  HWY_INLINE void load(const float* from, bool first, int64_t stride = kVectors * kLanes) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        at[r][v] = first ? all(0) : hn::Load(Floats(), from + r * stride + v * kLanes);
  }
  HWY_INLINE void store(float* to, int64_t stride = kVectors * kLanes) const {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        hn::Store(at[r][v], Floats(), to + r * stride + v * kLanes);
  }
};

// The rows and panels of a tile. A fused multiply-add takes 4 cycles and two start per cycle, so 8
// or more sums must be in flight: as many as fit into the registers with the weights. See
// gemm/micro-inl.h.
struct FloatTiles {
  static constexpr int kMostRows = kLanes == 16 ? 8 : 4;
  static constexpr int panels(int rows) {
    if (kLanes == 16) return rows <= 4 ? 4 : 3;
    return rows == 1 && kLanes == 8 ? 4 : rows <= 2 ? 2 : 1;
  }
  // Columns of W at a time: a block of panels, at most 64 x 192 floats (48 KB), stays in or near L1
  // while all rows of x are processed.
  static constexpr int64_t kBlock = 192;
};

struct F32Tiles : FloatTiles {
  static constexpr int64_t kPanelBytes = 4 * kPanelOutputs;  // for each k

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* sums, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    Sums<kRows, kVectors> sum;
    sum.load(sums, k.begin == 0);
    const float* x = job.floats + rows.begin * job.stride + k.begin;
    const float* w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p)
      w[p] = reinterpret_cast<const float*>(job.panel(panel + p)) +
             (k.begin - job.first_k) * kPanelOutputs;
    for (int64_t i = 0; i < k.size(); ++i) {
      Vector weights[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const float* from = w[v / kPanelVectors] + i * kPanelOutputs;
        weights[v] = hn::Load(Floats(), from + v % kPanelVectors * kLanes);
        if (v % kPanelVectors == 0) ahead.ask(v / kPanelVectors, i);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vector factor = all(x[r * job.stride + i]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          sum.at[r][v] = hn::MulAdd(factor, weights[v], sum.at[r][v]);
      }
    }
    sum.store(sums);
  }
};

// Sets `to` [k.size()][16] to a panel's weights for this range of k, in the layout that F32Tiles
// reads. k.size() is even.
HWY_INLINE void widen_panel(const uint8_t* panel, Range k, float* to) {
  const uint32_t* from = reinterpret_cast<const uint32_t*>(panel) + k.begin / 2 * kPanelOutputs;
  for (int64_t i = 0; i < k.size(); i += 2, from += kPanelOutputs, to += 2 * kPanelOutputs) {
    for (int64_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const auto pairs = hn::Load(Words(), from + lane);
      hn::Store(upper_of(pairs), Floats(), to + lane);
      hn::Store(lower_of(pairs), Floats(), to + kPanelOutputs + lane);
    }
  }
}

// bf16 weights widened in registers.
struct Bf16Tiles : FloatTiles {
  static constexpr int64_t kPanelBytes = 2 * kPanelOutputs;

  // If at least 4 tiles share a block, it is widened once for all of them.
  using Wide = F32Tiles;
  static bool widens(int64_t tiles) { return tiles >= 4; }
  // Returns a job whose panels are the widened blocks [panels][kBlock][16] of `job`.
  static PackedJob widened(const PackedJob& job, int64_t panel, int64_t panels, Range k) {
    constexpr int64_t kBlockFloats = kBlock * kPanelOutputs;
    float* blocks = scratch(ScratchUse::packed_b, 4 * kBlockFloats);
    for (int64_t p = 0; p < panels; ++p)
      widen_panel(job.panel(panel + p), k, blocks + p * kBlockFloats);
    PackedJob wide = job;
    wide.weight.panels = blocks;
    wide.panel_size = kBlockFloats * static_cast<int64_t>(sizeof(float));
    wide.first_k = k.begin;
    return wide;
  }

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* sums, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    Sums<kRows, kVectors> sum;
    sum.load(sums, k.begin == 0);
    const float* x = job.floats + rows.begin * job.stride + k.begin;
    const uint32_t* w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p)
      w[p] = reinterpret_cast<const uint32_t*>(job.panel(panel + p)) + k.begin / 2 * kPanelOutputs;
    const auto add = [&](int64_t i, const Vector* weights) HWY_ATTR {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const Vector factor = all(x[r * job.stride + i]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          sum.at[r][v] = hn::MulAdd(factor, weights[v], sum.at[r][v]);
      }
    };
    for (int64_t i = 0; i < k.size(); i += 2) {
      WordVector pairs[kVectors];
      Vector weights[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const uint32_t* from = w[v / kPanelVectors] + i / 2 * kPanelOutputs;
        pairs[v] = hn::Load(Words(), from + v % kPanelVectors * kLanes);
        weights[v] = upper_of(pairs[v]);
        if (v % kPanelVectors == 0) ahead.ask(v / kPanelVectors, i / 2);
      }
      add(i, weights);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weights[v] = lower_of(pairs[v]);
      add(i + 1, weights);
    }
    sum.store(sums);
  }
};

// bf16 weights times bf16 activations, two values of k at a time.
template <class Pairs>
struct Bf16PairTiles : FloatTiles {
  static constexpr int64_t kBlock = 2 * FloatTiles::kBlock;  // elements have half the size
  static constexpr int64_t kPanelBytes = 2 * kPanelOutputs;

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* sums, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    Sums<kRows, kVectors> sum;
    sum.load(sums, k.begin == 0);
    const uint32_t* x = job.pairs + rows.begin * job.stride + k.begin / 2 * kRows;
    const uint32_t* w[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p)
      w[p] = reinterpret_cast<const uint32_t*>(job.panel(panel + p)) + k.begin / 2 * kPanelOutputs;
    const int64_t pairs = k.size() / 2;
    for (int64_t i = 0; i < pairs; ++i, x += kRows) {
      WordVector weights[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const uint32_t* from = w[v / kPanelVectors] + i * kPanelOutputs;
        weights[v] = hn::Load(Words(), from + v % kPanelVectors * kLanes);
        if (v % kPanelVectors == 0) ahead.ask(v / kPanelVectors, i);
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const WordVector pair = hn::Set(Words(), x[r]);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          sum.at[r][v] = Pairs::multiply_add(weights[v], pair, sum.at[r][v]);
      }
    }
    sum.store(sums);
  }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
