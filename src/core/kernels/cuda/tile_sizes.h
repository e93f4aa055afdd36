#pragma once

// The sizes of the tiles that blocks of threads compute, for the kernels and for the host, which
// starts them.

#include <cstddef>
#include <cstdint>

namespace fovea::cuda {

// ---- Products by chains of multiply-adds, and attention; see tile.cuh

inline constexpr int kTile = 64;   // rows and columns of results
inline constexpr int kDepth = 16;  // elements of the inner index at a time
inline constexpr int kSide = 16;   // threads of a row
// One more column, so that the threads of a warp store to different banks.
inline constexpr int kTileStride = kTile + 1;
inline constexpr size_t kTileBytes = size_t{2} * kDepth * kTileStride * sizeof(float);
inline constexpr size_t kAttentionBytes = kTileBytes + sizeof(float) * kTile * kTileStride;

// ---- Products on tensor cores; see gemm_mma.cu

inline constexpr int kInner = 32;  // elements of k in a stage
inline constexpr int kStages = 3;  // of the pipeline of copies
inline constexpr int kPad = 8;     // elements after a row, so that 8 rows are in all banks

// A block of warps, each of which has row_parts x column_parts results of 16 x 8.
struct MmaShape {
  int warp_rows, warp_columns, row_parts, column_parts;

  constexpr int rows() const { return warp_rows * row_parts * 16; }
  constexpr int columns() const { return warp_columns * column_parts * 8; }
  // Elements of a stage of an operand: [count, kInner] or, if k comes first, [kInner, count].
  static constexpr int elements(int count) {
    const int rows_first = count * (kInner + kPad), k_first = kInner * (count + kPad);
    return rows_first > k_first ? rows_first : k_first;
  }
  constexpr size_t bytes() const {
    return size_t{2} * kStages * static_cast<size_t>(elements(rows()) + elements(columns()));
  }
};
inline constexpr MmaShape kWholeTiles = {2, 4, 4, 4}, kFewRows = {1, 4, 1, 2};

inline constexpr int kMostExperts = 512;  // of choose_experts

// ---- Attention on tensor cores; see attention_mma.cu

// `tiles` of kTile rows of `width` bf16, and what is known of kTile rows of queries.
constexpr size_t bytes_of_mma_attention(int width, int tiles) {
  return static_cast<size_t>(tiles) * kTile * static_cast<size_t>(width + kPad) * 2 + kTile * 40;
}
inline constexpr int kForwardTiles = 5, kBackwardTiles = 4;

}  // namespace fovea::cuda
