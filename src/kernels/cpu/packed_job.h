#pragma once

#include "kernels/packed.h"

namespace fovea::cpu {

struct Span {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// One product as its tiles see it: activations as the format wants them, weights, and a widened
// bias. Rows of activations are `stride` elements apart.
struct PackedJob {
  PackedMatrix weight;
  int64_t rows, stride;
  // One of these: f32; bf16 in pairs; or bytes q in groups.
  const float* floats;
  const uint16_t* halves;
  const int8_t* bytes;
  // Of each row's groups, with `bytes`: the scale, and minus the sum of q times the weights'
  // offset.
  const float* scales;
  const int32_t* corrections;
  const float* bias;  // null where there is none
  Out y;

  const uint8_t* panel(int64_t index) const {
    return static_cast<const uint8_t*>(weight.panels) + index * panel_size;
  }
  const uint16_t* panel_scales(int64_t index) const {
    return weight.scales + index * groups * kPanelOutputs;
  }
  int64_t panel_size, groups;
};

}  // namespace fovea::cpu
