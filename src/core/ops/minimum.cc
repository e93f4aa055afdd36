#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor minimum(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "minimum: {} and {}; expected equal shapes", a.shape(), b.shape());
  const int64_t size = a.size();
  Tensor y = empty_like(a);
  kernels(a).minimum(y, a, b, size);
  return record(y, {a, b}, [=, a = Saved(a), b = Saved(b)](const Tensor& dy, Gradients& d) {
    // The gradient goes to the smaller element; equal elements share it.
    kernels(dy).minimum_backward(d[a], dy, a.elements(), b.elements(), size);
    kernels(dy).minimum_backward(d[b], dy, b.elements(), a.elements(), size);
  });
}

}  // namespace fovea
