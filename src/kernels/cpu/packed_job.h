#pragma once

#include "kernels/packed.h"

namespace fovea::cpu {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// One product as its tiles see it: activations as the format wants them, and weights. Rows are
// dealt out to tiles of as equal sizes as can be, whatever threads there are.
struct PackedJob {
  PackedMatrix weight;
  int64_t panel_size, groups;
  int64_t first_k;  // of a panel's first line: 0, but where a block of panels was widened
  int64_t rows, tiles;
  In bias;  // null where there is none
  Out y;

  int64_t stride;       // elements of a row of activations
  const float* floats;  // f32 and bf16 weights: [rows][K]
  // bf16 weights where bf16 products are native: two bf16 in each, for each tile of R rows
  // [K/2][R].
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

// How bf16 weights are multiplied: widened, with activations as they are; or with activations
// rounded to bf16, by the CPU's own instruction or, for tests, by what it does.
enum class Bf16Products { widened, native, emulated };

// cpu::packed_linear with a choice.
void packed_linear_with(Bf16Products how, std::span<const PackedProduct> products, In x,
                        int64_t rows);

}  // namespace fovea::cpu
