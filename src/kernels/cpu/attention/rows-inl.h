// Tiles of contiguous keys and values in the forward pass; included once per target.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_ROWS_INL_H_
#endif

#include "kernels/cpu/attention/strip-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

// Tiles of contiguous keys and values, [B, capacity, G, ...], as floats.
template <class Numbers>
struct RowTiles {
  using Arithmetic = Numbers;
  const Block& block;
  KeyRows k, v;

  // Returns the first `columns` columns of the tile that begins at key `tile`.
  Tile<float> at(int64_t tile, int64_t columns) const {
    const QueryRows& queries = block.queries;
    const int64_t padded = block.padded, count = std::min(kTile, queries.shape.keys - tile);
    const TileRows keys = rows_of_tile(block.rows, k, queries, tile);
    transpose_tile(keys, columns, padded, block.rows, block.k);
    TileRows values{block.rows, block.value_padded, count};
    if (queries.rows() < kStrip) {  // copying would cost more than reading with a stride
      values = rows_of_tile(block.rows, v, queries, tile);
    } else {
      load_tile(block.rows, v, queries, tile, columns);
    }
    return {block.k, kTile, kPanel, values.data, values.stride, values.count};
  }
  // Prefetches the given keys and their values.
  void prefetch(Interval keys) const {
    prefetch_keys(k, block.queries, keys);
    prefetch_keys(v, block.queries, keys);
  }
};

// The same for bf16, as words of two numbers.
template <class Pairs>
struct RowWordTiles {
  using Arithmetic = Bf16Words<Pairs>;
  const Block& block;
  KeyRows k, v;

  Tile<uint32_t> at(int64_t tile, int64_t columns) const {
    const int64_t count = std::min(kTile, block.queries.shape.keys - tile);
    const int64_t words = round_up(k.width, 8) / 2;  // transpose_tile() reads four at a time
    transpose_tile(key_words(tile, count, words), columns, words, block.rows, block.k);
    auto* const keys = reinterpret_cast<uint32_t*>(block.k);
    for (int64_t i = 0; i < words * kTile; i += kLanes)
      hn::Store(swap_halves(hn::Load(Words(), keys + i)), Words(), keys + i);
    auto* const values = reinterpret_cast<uint32_t*>(block.rows);
    pair_values(tile, count, values);
    return {keys, kTile, kPanel, values, block.value_padded, count};
  }
  void prefetch(Interval keys) const {
    prefetch_keys(k, block.queries, keys);
    prefetch_keys(v, block.queries, keys);
  }

 private:
  const bf16* row_of(const KeyRows& x, int64_t key) const {
    return static_cast<const bf16*>(x.x.data) + block.queries.key_offset(key, x.width);
  }
  int64_t stride_of(const KeyRows& x) const { return block.queries.shape.kv_heads * x.width; }

  // Returns the keys of a tile as rows of words of two adjacent numbers, the earlier in the lower
  // half: in place, or copied to block.rows and padded with zeros.
  TileRows key_words(int64_t tile, int64_t count, int64_t words) const {
    if (k.width == 2 * words)
      return {reinterpret_cast<const float*>(row_of(k, tile)), stride_of(k) / 2, count};
    auto* to = reinterpret_cast<bf16*>(block.rows);
    std::fill_n(to, kTile * 2 * words, bf16{});
    for (int64_t key = 0; key < count; ++key, to += 2 * words)
      std::copy_n(row_of(k, tile + key), k.width, to);
    return {block.rows, words, kTile};
  }

  // to [ceil(count / 2), value_padded] = words of two adjacent rows of values, the earlier in the
  // upper half; zeros after the last row and the last column.
  void pair_values(int64_t tile, int64_t count, uint32_t* HWY_RESTRICT to) const {
    const hn::Rebind<uint16_t, Floats> halves;
    const int64_t stride = block.value_padded;
    for (int64_t row = 0; row < count; row += 2, to += stride) {
      const bf16* const first = row_of(v, tile + row);
      const bf16* const second = row + 1 < count ? first + stride_of(v) : nullptr;
      int64_t d = 0;
      for (; d + kLanes <= v.width; d += kLanes) {
        const auto upper = hn::PromoteTo(Words(), hn::LoadU(halves, &first[d].bits));
        const auto lower = second == nullptr
                               ? hn::Zero(Words())
                               : hn::PromoteTo(Words(), hn::LoadU(halves, &second[d].bits));
        hn::Store(hn::Or(hn::ShiftLeft<16>(upper), lower), Words(), to + d);
      }
      for (; d < v.width; ++d)
        to[d] = uint32_t{first[d].bits} << 16 | (second == nullptr ? 0u : second[d].bits);
      std::fill(to + d, to + stride, 0u);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#endif
