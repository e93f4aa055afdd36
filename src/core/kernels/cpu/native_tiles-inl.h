// The instructions of AMX; see tiles-inl.h. Included once per target.

#if defined(FOVEA_NATIVE_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_NATIVE_TILES_INL_H_
#undef FOVEA_NATIVE_TILES_INL_H_
#else
#define FOVEA_NATIVE_TILES_INL_H_
#endif

#include <immintrin.h>

#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile_config.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

struct NativeTiles {
  HWY_INLINE void configure(const TileConfig& config) {
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
  }
  HWY_INLINE void release() { __asm__ volatile("tilerelease"); }
  template <int kTile>
  HWY_INLINE void zero() {
    __asm__ volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  // Loads rows that are `stride` bytes apart.
  template <int kTile>
  HWY_INLINE void load(const void* from, size_t stride) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" ::"i"(kTile), "r"(from), "r"(stride)
                     : "memory");
  }
  template <int kTile>
  HWY_INLINE void store(void* to, size_t stride) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" ::"i"(kTile), "r"(to), "r"(stride)
                     : "memory");
  }
  // Rounds to bf16. CPUs with AMX have an instruction for this, which treats denormal numbers as
  // zero.
  static HWY_INLINE void narrow_to(bf16* to, Vector v) {
#if HWY_TARGET == HWY_AVX2
    hn::StoreU(narrow_half(v), hn::Rebind<uint16_t, Floats>(), &to->bits);
#else
    __m256i halves;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(halves) : "v"(v.raw));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
#endif
  }
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply_add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }
  template <int kSum, int kA, int kB>
  HWY_INLINE void multiply_add_bytes() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kA), "i"(kB));
  }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
