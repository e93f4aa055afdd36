#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void minimum(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double left = get(a, i), right = get(b, i);
    put(y, i, left < right || std::isnan(left) ? left : right);
  }
}

void minimum_backward(Out dx, In dy, In x, In other, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double left = get(x, i), right = get(other, i);
    put(dx, i, get(dy, i) * (left < right ? 1 : left == right ? 0.5 : 0));
  }
}

void clip(Out y, In x, float least, float most, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double value = get(x, i);
    put(y, i, value < least ? least : value > most ? most : value);
  }
}

void clip_backward(Out dx, In dy, In x, float least, float most, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double value = get(x, i);
    put(dx, i, value >= least && value <= most ? get(dy, i) : 0);
  }
}

}  // namespace fovea::reference
