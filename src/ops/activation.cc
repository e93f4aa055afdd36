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

}  // namespace fovea
