#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor multiply(const Tensor& a, const Tensor& b) {
  check(a.shape() == b.shape(), "multiply: {} and {}; expected equal shapes", a.shape(), b.shape());
  Tensor y = empty_like(a);
  kernels(a).multiply(y, a, b, a.size());
  return record(y, {a, b}, [a = Saved(a), b = Saved(b)](const Tensor& dy, Gradients& d) {
    if (d.wants(a)) kernels(dy).multiply(d[a], dy, b.elements(), dy.size());
    if (d.wants(b)) kernels(dy).multiply(d[b], dy, a.elements(), dy.size());
  });
}

}  // namespace fovea
