#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

double value(Elementary kind, double x) {
  switch (kind) {
    case Elementary::exp: return std::exp(x);
    case Elementary::log: return std::log(x);
    case Elementary::log_sigmoid:
      return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
  }
  return x;
}

double derivative(Elementary kind, double x) {
  switch (kind) {
    case Elementary::exp: return std::exp(x);
    case Elementary::log: return 1 / x;
    case Elementary::log_sigmoid: return 1 / (1 + std::exp(x));
  }
  return 1;
}

}  // namespace

void elementary(Out y, In x, Elementary kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, value(kind, get(x, i)));
}

void elementary_backward(Out dx, In dy, In x, Elementary kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(dx, i, get(dy, i) * derivative(kind, get(x, i)));
}

}  // namespace fovea::reference
