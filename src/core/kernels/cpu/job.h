#pragma once

#include "kernels/cpu/product.h"
#include "kernels/isa.h"
#include "kernels/layout/packed.h"

namespace fovea::cpu {

// One product: weights, and activations in the form that the weights' format requires. Rows are
// divided into tiles of nearly equal size, independent of the number of threads.
struct PackedJob {
  PackedMatrix weight;
  int64_t panel_size, groups;
  int64_t depth;    // K, padded with zeros to a multiple of the tiles' depth
  int64_t first_k;  // k of a panel's first line: 0 unless a block of panels was widened
  int64_t rows, tiles;
  In bias;  // null if there is none
  Out y;
  std::optional<Activation> activation;
  In added;  // what is added to the result: the residual, the old y, or null

  int64_t stride;       // elements of a row of activations
  const float* floats;  // activations for f32 weights and widened bf16 ones: [rows][depth]
  // Activations for other bf16 weights, as words of two: [depth/2][R] for each tile of R rows, or
  // [rows][depth/2] for AMX's tiles.
  const uint32_t* pairs;
  // Activations for weights that are integers. For each tile of R rows: integers q [K/4][R][4]; for
  // each of its groups, scales and corrections [K/G][R]. A correction is minus the sum of q times
  // the weights' offset.
  const int8_t* bytes;
  const float* scales;
  const int32_t* corrections;
  // Block types (kernels/layout/blocks.h): corrections for each group of weights, which has 16 or
  // 32, or, if the type has minimums, `totals`: scale times the sum of q.
  const float* totals;
  // The scales and minimums (or null) of unpacked blocks of panels, see UnpackedTiles.
  const float *block_scales, *block_minimums;

  // Returns this job with the weights, bias and output of `product`, and the same activations.
  PackedJob of(const PackedProduct& product) const {
    PackedJob job = *this;
    job.weight = product.weight;
    job.bias = product.bias;
    job.y = product.y;
    job.activation = product.activation;
    job.added = product.y.add ? In{product.y.data, product.y.dtype} : product.residual;
    return job;
  }
  Range rows_of(int64_t tile) const { return {rows * tile / tiles, rows * (tile + 1) / tiles}; }
  const uint8_t* panel(int64_t index) const {
    return static_cast<const uint8_t*>(weight.panels) + index * panel_size;
  }
  const uint16_t* panel_scales(int64_t index) const {
    return weight.scales + index * groups * kPanelOutputs;
  }
};

// Like cpu::packed_linear, for weights of a block type.
void block_linear(std::span<const PackedProduct> products, In x, int64_t rows);

// Like cpu::packed_linear, with a given kind of bf16 products.
void packed_linear_with(Bf16Products how, std::span<const PackedProduct> products, In x,
                        int64_t rows);

}  // namespace fovea::cpu
