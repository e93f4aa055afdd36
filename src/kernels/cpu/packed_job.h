#pragma once

#include "kernels/cpu/gemm_product.h"
#include "kernels/isa.h"
#include "kernels/packed.h"

namespace fovea::cpu {

// One product as its tiles see it: activations as the format wants them, and weights. Rows are
// dealt out to tiles of as equal sizes as can be, whatever threads there are.
struct PackedJob {
  PackedMatrix weight;
  int64_t panel_size, groups;
  int64_t depth;    // K, rounded up with zeros to what the tiles take
  int64_t first_k;  // of a panel's first line: 0, but where a block of panels was widened
  int64_t rows, tiles;
  In bias;  // null where there is none
  Out y;

  int64_t stride;       // elements of a row of activations
  const float* floats;  // f32 weights, and bf16 ones that are widened: [rows][depth]
  // bf16 weights otherwise: words of two as the weights', for each tile of R rows [depth/2][R], or
  // [rows][depth/2] for AMX's tiles.
  const uint32_t* pairs;
  // int8 and int4 weights: whole numbers q, for each tile of R rows [K/4][R][4], and for each of
  // its groups [K/G][R] the scale, and minus the sum of q times the weights' offset.
  const int8_t* bytes;
  const float* scales;
  const int32_t* corrections;

  // The same activations with other weights.
  PackedJob of(const PackedProduct& product) const {
    PackedJob job = *this;
    job.weight = product.weight;
    job.bias = product.bias;
    job.y = product.y;
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

// cpu::packed_linear with a choice.
void packed_linear_with(Bf16Products how, std::span<const PackedProduct> products, In x,
                        int64_t rows);

}  // namespace fovea::cpu
