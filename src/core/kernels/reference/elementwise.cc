#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void convert(Out y, In x, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i));
}

void add(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(a, i) + get(b, i));
}

void multiply(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(a, i) * get(b, i));
}

void scale(Out y, In x, float factor, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i) * factor);
}

void shift(Out y, In x, float offset, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i) + offset);
}

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

void softcap(Out y, In x, float cap, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, cap * std::tanh(get(x, i) / cap));
}

void softcap_backward(Out dx, In dy, In x, float cap, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double tanh = std::tanh(get(x, i) / cap);
    put(dx, i, get(dy, i) * (1 - tanh * tanh));
  }
}

}  // namespace fovea::reference
