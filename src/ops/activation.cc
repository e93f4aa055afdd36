#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor activation(const Tensor& x, Activation kind) {
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).activation(y, x, kind, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).activation_backward(d[x], dy, x.elements(), kind, size);  // dx = dy * f'(x)
  });
}

Tensor gated_activation(const Tensor& x, const Tensor& factor, Activation kind) {
  // In bf16, f(x) is rounded before the product even if nothing is recorded, so that both cases
  // give the same bits.
  if (recording() || x.dtype() == DType::bf16) return multiply(activation(x, kind), factor);
  check(x.shape() == factor.shape(), "gated_activation: {} and {}; expected equal shapes",
        x.shape(), factor.shape());
  Tensor y = empty_like(x);
  kernels(x).gated_activation(y, x, factor, kind, x.size());
  return y;
}

}  // namespace fovea
