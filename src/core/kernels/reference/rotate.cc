#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void rotate(Out y, In x, In cosines, In sines, const Rotation& r) {
  const int64_t half = r.rotated / 2;
  const bool halves = r.pairing == Pairing::halves;
  for (int64_t i = 0; i < r.rows * r.heads; ++i) {
    const int64_t head = i * r.width, angles = i / r.heads % r.angle_rows * half;
    for (int64_t pair = 0; pair < half; ++pair) {
      const int64_t first = head + (halves ? pair : 2 * pair);
      const int64_t second = first + (halves ? half : 1);
      const double a = get(x, first), b = get(x, second), cosine = get(cosines, angles + pair);
      const double sine = r.inverse ? -get(sines, angles + pair) : get(sines, angles + pair);
      put(y, first, a * cosine - b * sine);
      put(y, second, b * cosine + a * sine);
    }
    for (int64_t j = head + r.rotated; j < head + r.width; ++j) put(y, j, get(x, j));
  }
}

}  // namespace fovea::reference
