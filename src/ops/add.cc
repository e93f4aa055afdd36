#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor add(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "add: {} and {}; expected equal shapes", a.shape(), b.shape());
  Tensor y = empty_like(a);
  kernels(a).add(y, a, b, a.size());
  if (!recording()) return y;
  return record(y, {a, b},
                [a = Saved::slot(a), b = Saved::slot(b)](const Tensor& dy, Gradients& d) {
                  d.pass(a, dy);
                  d.pass(b, dy);
                });
}

}  // namespace fovea
