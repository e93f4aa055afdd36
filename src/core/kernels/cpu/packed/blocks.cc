// Products with weights of block types. Few rows of x unpack weights in registers; for more rows,
// each thread unpacks a block of panels to bytes, which all tiles of rows then share.

#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/stored.h"
#include "kernels/isa.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed/blocks.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/blocks-inl.h"
#include "kernels/cpu/packed/schedule-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <int64_t kGroup>
void quantize_block_rows(PackedJob& job, In x) {
  const BlockFormat& format = block_format(job.weight.format);
  const int64_t K = job.weight.width, groups = K / kGroup;
  job.stride = K;
  auto* bytes = reinterpret_cast<int8_t*>(scratch(ScratchUse::packed_a, ceil_div(job.rows * K, 4)));
  float* scales = scratch(ScratchUse::scales, job.rows * job.groups);
  float* sums = scratch(ScratchUse::corrections, job.rows * groups);
  float* totals = has_minimum(format.scales) ? sums : nullptr;
  auto* corrections = totals == nullptr ? reinterpret_cast<int32_t*>(sums) : nullptr;
  const int32_t offset = format.table != nullptr ? kTableOffset : format.offset;
  // Threads share the groups, not the rows: the rows of a tile lie in the same cache lines.
  constexpr int64_t kGrain = 4096;  // numbers, about 2 microseconds
  const int64_t grain = kGrain / (job.rows * kPart) + 1;
  parallel_for(job.groups, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t first = begin * kPart, count = end * kPart - first;
    float* room = x.dtype == DType::f32 ? nullptr : scratch(ScratchUse::packed_b, count);
    for (int64_t t = 0; t < job.tiles; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = tile.begin; r < tile.end; ++r) {
        round_block_row<kGroup>(
            widened(x, r * K + first, count, room), {begin, end}, offset, r - tile.begin,
            tile.size(), bytes + tile.begin * K, scales + tile.begin * job.groups,
            corrections == nullptr ? nullptr : corrections + tile.begin * groups,
            totals == nullptr ? nullptr : totals + tile.begin * groups);
      }
    }
  });
  job.bytes = bytes;
  job.scales = scales;
  job.corrections = corrections;
  job.totals = totals;
}

// Values of tables have 8 bits, so PairsDot must remove their offset.
template <template <WeightFormat> class DotOf, bool kTable>
using BlockDot = DotOf<kTable ? WeightFormat::int8 : WeightFormat::int4>;

// Up to this many rows, tiles unpack weights in registers: for more, unpacking once costs less.
constexpr int64_t kFewRows = kLanes == 16 ? 32 : 16;

template <Planes kPlanes, template <WeightFormat> class DotOf>
void multiply_blocks(PackedJob& job, std::span<const PackedProduct> products, In x) {
  using Dot = BlockDot<DotOf, kPlanes.table>;
  const bool few = job.rows <= kFewRows;
  job.tiles = ceil_div(
      job.rows, few ? BlockTiles<kPlanes, Dot>::kMostRows : UnpackedTiles<kPlanes, Dot>::kMostRows);
  quantize_block_rows<kPlanes.group>(job, x);
  if (few)
    multiply_packed<BlockTiles<kPlanes, Dot>>(job, products);
  else
    multiply_packed<UnpackedTiles<kPlanes, Dot>>(job, products);
}

template <template <WeightFormat> class DotOf>
void multiply_format(PackedJob& job, std::span<const PackedProduct> products, In x) {
  switch (job.weight.format) {
    case WeightFormat::q2_k:
      return multiply_blocks<Planes{2, 0, 16, false}, DotOf>(job, products, x);
    case WeightFormat::q3_k:
      return multiply_blocks<Planes{2, 1, 16, false}, DotOf>(job, products, x);
    case WeightFormat::q6_k:
      return multiply_blocks<Planes{4, 2, 16, false}, DotOf>(job, products, x);
    case WeightFormat::q5_0:
    case WeightFormat::q5_1:
    case WeightFormat::q5_k:
      return multiply_blocks<Planes{4, 1, 32, false}, DotOf>(job, products, x);
    case WeightFormat::iq4_nl:
    case WeightFormat::iq4_xs:
    case WeightFormat::mxfp4:
      return multiply_blocks<Planes{4, 0, 32, true}, DotOf>(job, products, x);
    default: return multiply_blocks<Planes{4, 0, 32, false}, DotOf>(job, products, x);
  }
}

void block_linear_on(std::span<const PackedProduct> products, In x, int64_t rows) {
  PackedJob job = {};
  job.weight = products.front().weight;  // all share format and width
  job.rows = rows;
  job.depth = job.weight.width;
  job.panel_size = panel_bytes(job.weight);
  job.groups = job.weight.width / kPart;
  with_byte_dot(
      [&]<template <WeightFormat> class Dot>() { multiply_format<Dot>(job, products, x); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(block_linear_on);

void block_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  // Without VNNI, integers are multiplied 256 bits at a time, the baseline, even with AVX-512.
  if (byte_products() == ByteProducts::pairs)
    return HWY_STATIC_DISPATCH(block_linear_on)(products, x, rows);
  HWY_DYNAMIC_DISPATCH(block_linear_on)(products, x, rows);
}

}  // namespace fovea::cpu
#endif
