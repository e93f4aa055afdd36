#include "base/error.h"
#include "ops/ops.h"

namespace fovea {

Tensor subtract(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "subtract: {} and {}; expected equal shapes", a.shape(), b.shape());
  return add(a, scale(b, -1));
}

}  // namespace fovea
