#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

namespace {

Tensor sum_of(const Tensor& a, const Tensor& b) {
  Tensor y = empty_like(a);
  kernels(a).add(y, a, b, a.size());
  return y;
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "add: {} and {}; expected equal shapes", a.shape(), b.shape());
  Tensor y = sum_of(a, b);
  if (!recording()) return y;
  // In a residual stream, the elements of a are kept anyway, and those of b may be narrower than
  // the sum. Every second sum is kept, so that none is computed from many.
  if (size_of(b.dtype()) < size_of(a.dtype()) && !a.has_recipe())
    y.set_recipe([a = Saved(a), b = Saved(b)] { return sum_of(a.elements(), b.elements()); });
  return record(y, {a, b},
                [a = Saved::slot(a), b = Saved::slot(b)](const Tensor& dy, Gradients& d) {
                  d.pass(a, dy);
                  d.pass(b, dy);
                });
}

}  // namespace fovea
