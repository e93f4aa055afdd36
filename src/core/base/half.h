#pragma once

// IEEE binary16, the type of some weights in files and of scales. Every supported CPU can convert
// it (F16C, and all of ARM64).

#ifdef __aarch64__
#include <bit>
#else
#include <immintrin.h>
#endif

#include <cstdint>

namespace fovea {

// widen_half() is exact. narrow_to_half() rounds to nearest, ties to even; magnitudes from 65520
// become infinity.
#ifdef __aarch64__
inline float widen_half(uint16_t half) { return std::bit_cast<__fp16>(half); }
inline uint16_t narrow_to_half(float x) { return std::bit_cast<uint16_t>(static_cast<__fp16>(x)); }
#else
inline float widen_half(uint16_t half) { return _cvtsh_ss(half); }
inline uint16_t narrow_to_half(float x) {
  return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#endif

}  // namespace fovea
