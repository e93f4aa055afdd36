#pragma once

// The numbers of a step of an optimiser; Kernels has the formulas.

#include <cstdint>

#include "kernels/entry.h"

namespace fovea {

struct AdamW {
  float rate = 0, beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f, decay = 0;
  float correction1 = 1, correction2 = 1;  // 1 - beta^step
  float gradient_scale = 1;  // clipping and accumulation: g = gradient * gradient_scale
};

struct Sgd {
  float rate = 0, momentum = 0, decay = 0;
  bool nesterov = false;
  float gradient_scale = 1;  // as in AdamW
};

struct Lion {
  float rate = 0, beta1 = 0.9f, beta2 = 0.99f, decay = 0;
  float gradient_scale = 1;  // as in AdamW
};

// The moments of AdamW in 8 bits (cf. Dettmers et al. 2022): each block of kMomentBlock elements
// has the largest |m| and the largest sqrt(v), and codes of m and sqrt(v) as fractions of them
// (packed_moments.h). Random numbers depend on the seed, the parameter and the step.
inline constexpr int64_t kMomentBlock = 256;
struct PackedMoments {
  Out m, v;                  // u8 [size], codes of m and of sqrt(v)
  Out largest_m, largest_v;  // f32, one per block: the largest |m| and sqrt(v)
  uint64_t seed = 0, step = 0;
  uint32_t parameter = 0;  // index of the parameter in the model

  void show_arrays(DeviceOfCall& call) const {
    call.meet(m), call.meet(v), call.meet(largest_m), call.meet(largest_v);
  }
};

}  // namespace fovea
