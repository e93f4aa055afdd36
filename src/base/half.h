#pragma once

// IEEE binary16, as used in files and scales. Every CPU of the baseline converts it (F16C).

#include <immintrin.h>

#include <cstdint>

namespace fovea {

inline float widen_half(uint16_t half) { return _cvtsh_ss(half); }  // exactly
// Rounds to nearest, ties to even; above 65504 to infinity.
inline uint16_t narrow_to_half(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

}  // namespace fovea
