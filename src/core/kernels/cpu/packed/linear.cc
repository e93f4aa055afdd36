// Products with weights that were packed once; schedule-inl.h divides the work.

#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/job.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/stored.h"
#include "kernels/layout/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed/linear.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/packed/schedule-inl.h"
#include "kernels/cpu/packed/tiles-inl.h"
#include "kernels/isa.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

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

bf16* room_for_rows(const PackedJob& job, int64_t rows) {
  const int64_t words = rows * job.depth / 2;
  return reinterpret_cast<bf16*>(scratch(ScratchUse::packed_b, words));
}

uint32_t* room_for_pairs(const PackedJob& job) {
  const int64_t words = job.rows * job.depth / 2;
  return reinterpret_cast<uint32_t*>(scratch(ScratchUse::packed_a, words));
}

// Returns the number of rows that is worth another thread: copying 4096 numbers takes about a
// microsecond.
HWY_INLINE int64_t rows_worth_a_thread(const PackedJob& job) { return 4096 / (job.depth + 1) + 1; }

// Sets lines[i] to word `word` + i of as many rows as a vector has lanes: 4 or 8.
template <class Tag>
HWY_INLINE void transpose_pairs(Tag tag, const bf16* const* rows, int64_t word,
                                hn::Vec<Tag> (&lines)[4]) {
  const hn::Full128<uint32_t> four;
  const hn::Full128<uint16_t> halves;
  const auto words_of = [&](int64_t i) HWY_ATTR {
    return hn::BitCast(four, hn::LoadU(halves, &rows[i][2 * word].bits));
  };
  // Of 8 rows, row i is in the lower half of a vector, row i + 4 in the upper half.
  const auto row = [&](int64_t i) HWY_ATTR {
    if constexpr (hn::MaxLanes(Tag()) == 4)
      return hn::RotateRight<16>(words_of(i));
    else
      return hn::RotateRight<16>(hn::Combine(tag, words_of(i + 4), words_of(i)));
  };
  const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
  const auto even = hn::InterleaveLower(tag, r0, r2), odd = hn::InterleaveLower(tag, r1, r3);
  const auto even2 = hn::InterleaveUpper(tag, r0, r2), odd2 = hn::InterleaveUpper(tag, r1, r3);
  lines[0] = hn::InterleaveLower(tag, even, odd);
  lines[1] = hn::InterleaveUpper(tag, even, odd);
  lines[2] = hn::InterleaveLower(tag, even2, odd2);
  lines[3] = hn::InterleaveUpper(tag, even2, odd2);
}

// Writes words of 8 rows, of which the first `count` are real, to lines of `count` words: `to`
// [words][count], where `words` is a multiple of 4.
void interleave_pairs(const bf16* const* rows, int64_t count, int64_t words, uint32_t* to) {
  const hn::CappedTag<uint32_t, 8> tag;
  constexpr int64_t kTagLanes = hn::MaxLanes(decltype(tag)()), kVectors = 8 / kTagLanes;
  const uint32_t* const end = to + words * count;
  for (int64_t word = 0; word < words; word += 4) {
    hn::Vec<decltype(tag)> lines[kVectors][4];
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v)
      transpose_pairs(tag, rows + v * kTagLanes, word, lines[v]);
    // A line of fewer words is followed by others, which the next line overwrites.
    for (int64_t i = 0; i < 4; ++i, to += count) {
      HWY_ALIGN uint32_t line[8];
      const bool last = to + 8 > end;
      for (int64_t v = 0; v < kVectors; ++v)
        hn::StoreU(lines[v][i], tag, (last ? line : to) + v * kTagLanes);
      if (last) std::copy_n(line, count, to);
    }
  }
}

// Stores x as pairs: [depth/2][R] for each tile of R rows.
void pair_rows(PackedJob& job, In x) {
  const int64_t K = job.weight.width;
  job.depth = round_up(K, 32);
  job.stride = job.depth / 2;
  uint32_t* pairs = room_for_pairs(job);
  const bool in_place = x.dtype == DType::bf16 && K == job.depth;
  parallel_for(job.tiles, 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    constexpr int64_t kRows = 8;
    static_assert(FloatTiles::kMostRows <= kRows);
    bf16* room = in_place ? nullptr : room_for_rows(job, FloatTiles::kMostRows);
    const bf16* rows[kRows];
    for (int64_t t = begin; t < end; ++t) {
      const Range tile = job.rows_of(t);
      for (int64_t r = 0; r < tile.size(); ++r) {
        rows[r] = in_place ? static_cast<const bf16*>(x.data) + (tile.begin + r) * K
                           : room + r * job.depth;
        if (!in_place) narrow_row(job, x, tile.begin + r, room + r * job.depth);
      }
      uint32_t* to = pairs + tile.begin * job.stride;
      if (tile.size() == 1) {
        for (int64_t i = 0; i < job.stride; i += kLanes)
          hn::StoreU(load_pairs(rows[0] + 2 * i), Words(), to + i);
      } else {
        std::fill(rows + tile.size(), rows + kRows, rows[0]);
        interleave_pairs(rows, tile.size(), job.stride, to);
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
    bf16* row = room_for_rows(job, 1);
    for (int64_t r = begin; r < end; ++r) {
      narrow_row(job, x, r, row);
      for (int64_t i = 0; i < job.stride; i += kLanes)
        hn::StoreU(load_pairs(row + 2 * i), Words(), pairs + r * job.stride + i);
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
    bf16* row = room_for_rows(job, 1);
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
  if (has_whole_rows(weight) && is_quantized(weight.format)) return RowTiles<VnniDot>::kMostRows;
  if (weight.format == WeightFormat::int8)
    return QuantizedTiles<WeightFormat::int8, VnniDot>::kMostRows;
  if (weight.format == WeightFormat::int4)
    return QuantizedTiles<WeightFormat::int4, VnniDot>::kMostRows;
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
  with_byte_dot(
      [&]<template <WeightFormat> class Dot>() { multiply_quantized<Dot>(job, products); });
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
  if (is_block_type(products.front().weight.format)) return block_linear(products, x, rows);
  const bool bf16_weights = products.front().weight.format == WeightFormat::bf16;
  const FloatMode mode(bf16_weights ? kFlushToZero : FloatMode::current());
  // Without VNNI, integers are multiplied 256 bits at a time, the baseline, even with AVX-512.
  if (is_quantized(products.front().weight.format) && byte_products() == ByteProducts::pairs)
    return HWY_STATIC_DISPATCH(packed_linear_on)(how, products, x, rows);
  HWY_DYNAMIC_DISPATCH(packed_linear_on)(how, products, x, rows);
}

void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows) {
  packed_linear_with(bf16_products(), products, x, rows);
}

}  // namespace fovea::cpu
#endif
