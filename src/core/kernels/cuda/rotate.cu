// Rotary positions.

#include "kernels/cuda/dialect.h"

namespace fovea::cuda {

KERNEL(rotate)(Out y, In x, In cosines, In sines, Rotation r) {
  const int64_t half = r.rotated / 2, elements = r.rows * r.heads * r.width;
  for (int64_t e = first_element(); e < elements; e += element_stride()) {
    const int64_t i = e % r.width, row = e / (r.heads * r.width);
    if (i >= r.rotated) {
      put(y, e, get(x, e));
      continue;
    }
    const bool halves = r.pairing == Pairing::halves;
    const bool first = halves ? i < half : i % 2 == 0;
    const int64_t pair = halves ? i % half : i / 2, distance = halves ? half : 1;
    const int64_t angle = row % r.angle_rows * half + pair;
    const float sine = get(sines, angle);
    const float other = get(x, first ? e + distance : e - distance);
    put(y, e,
        multiply_add(get(x, e), get(cosines, angle), other * (first == r.inverse ? sine : -sine)));
  }
}

}  // namespace fovea::cuda
