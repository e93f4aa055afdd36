#pragma once

// IEEE binary16, the type of some weights in files and of scales. Every supported CPU can convert
// it (F16C).

#include <immintrin.h>

#include <cstdint>

namespace fovea {

inline float widen_half(uint16_t half) { return _cvtsh_ss(half); }  // exact
// Rounds to nearest, ties to even; magnitudes from 65520 become infinity.
inline uint16_t narrow_to_half(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

}  // namespace fovea
