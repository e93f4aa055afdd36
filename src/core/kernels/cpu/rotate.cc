#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rotate.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// y = x cosines + (the other element of each pair) sines, for one head; sines are -sin for the
// first element of a pair and sin for the second.

HWY_INLINE void rotate_halves(float* y, const float* x, const float* cosines, const float* sines,
                              int64_t rotated) {
  const int64_t half = rotated / 2;
  each_vector(half, [&](int64_t i, int64_t, auto access) HWY_ATTR {
    const Vector a = access.load(x + i), b = access.load(x + half + i);
    const Vector cosine = access.load(cosines + i);
    access.store(hn::MulAdd(a, cosine, hn::Mul(b, access.load(sines + i))), y + i);
    access.store(hn::MulAdd(b, cosine, hn::Mul(a, access.load(sines + half + i))), y + half + i);
  });
}

HWY_INLINE void rotate_neighbours(float* y, const float* x, const float* cosines,
                                  const float* sines, int64_t rotated) {
  each_vector(rotated, [&](int64_t i, int64_t, auto access) HWY_ATTR {
    const Vector v = access.load(x + i), other = hn::Shuffle2301(v);
    const Vector turned = hn::Mul(other, access.load(sines + i));
    access.store(hn::MulAdd(v, access.load(cosines + i), turned), y + i);
  });
}

// Writes one row's angles in the layout that the loops above read, [rotated] cosines and sines.
void spread(float* cosines, float* sines, In cosines_in, In sines_in, int64_t row,
            const Rotation& r, float* room) {
  const int64_t half = r.rotated / 2;
  const float* cosine = widened(cosines_in, row * half, half, room);
  const float* sine = widened(sines_in, row * half, half, room + half);
  for (int64_t i = 0; i < half; ++i) {
    const int64_t first = r.pairing == Pairing::halves ? i : 2 * i;
    const int64_t second = r.pairing == Pairing::halves ? half + i : 2 * i + 1;
    cosines[first] = cosines[second] = cosine[i];
    sines[first] = r.inverse ? sine[i] : -sine[i];
    sines[second] = -sines[first];
  }
}

void rotate_all(Out y, In x, In cosines, In sines, const Rotation& r) {
  const int64_t width = r.heads * r.width;
  parallel_for(r.rows, grain_of({r.rows, width}), [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(2 * Scratch::size_of(width) + 3 * Scratch::size_of(r.rotated));
    float *const input = scratch.take(width), *const output = scratch.take(width);
    float *const cosine = scratch.take(r.rotated), *const sine = scratch.take(r.rotated);
    float* const angles = scratch.take(r.rotated);
    for (int64_t row = first; row < last; ++row) {
      spread(cosine, sine, cosines, sines, row % r.angle_rows, r, angles);
      const float* from = widened(x, row * width, width, input);
      float* to = room_for(y, row * width, output);
      for (int64_t head = 0; head < width; head += r.width) {
        if (r.pairing == Pairing::halves)
          rotate_halves(to + head, from + head, cosine, sine, r.rotated);
        else
          rotate_neighbours(to + head, from + head, cosine, sine, r.rotated);
        std::copy(from + head + r.rotated, from + head + r.width, to + head + r.rotated);
      }
      narrow_into(y, row * width, width, to);
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(rotate_all);

void rotate(Out y, In x, In cosines, In sines, const Rotation& rotation) {
  check_stored_types(y, x, cosines, sines);
  HWY_DYNAMIC_DISPATCH(rotate_all)(y, x, cosines, sines, rotation);
}

}  // namespace fovea::cpu
#endif
