#pragma once

// Tiles of products. A block of 256 threads computes kTile x kTile sums; thread t has those of the
// rows t / 16 + 16 i and the columns t % 16 + 16 j, so that the 16 threads of a row are half a
// warp.

#include "kernels/cuda/dialect.h"
#include "kernels/cuda/tile_sizes.h"

namespace fovea::cuda {

inline constexpr int kOwn = kTile / kSide;

DEVICE int own_row() { return thread() / kSide; }
DEVICE int own_column() { return thread() % kSide; }

using Depths = float[kDepth][kTileStride];

struct Tiles {
  Depths a, b;
};

struct Sums {
  float of[kOwn][kOwn] = {};
};

// Continues each sum over the first `depths` products of a's rows and b's columns.
DEVICE void add_depths(Sums& sums, const float (*a)[kTileStride], const Depths& b, int depths) {
  for (int depth = 0; depth < depths; ++depth)
    UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) sums.of[i][j] =
        multiply_add(a[depth][own_row() + kSide * i], b[depth][own_column() + kSide * j],
                     sums.of[i][j]);
}

}  // namespace fovea::cuda
