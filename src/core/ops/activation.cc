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
  check(x.shape() == factor.shape(), "gated_activation: {} and {}; expected equal shapes",
        x.shape(), factor.shape());
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).gated_activation(y, x, factor, kind, size);
  if (!recording()) return y;
  y.set_recipe([=, x = Saved(x), factor = Saved(factor)] {
    const Tensor gate = x.elements(), again = empty_like(gate);
    kernels(gate).gated_activation(again, gate, factor.elements(), kind, size);
    return again;
  });
  return record(y, {x, factor},
                [=, x = Saved(x), factor = Saved(factor)](const Tensor& dy, Gradients& d) {
                  // dx = dy * factor * f'(x),  dfactor = dy * f(x)
                  kernels(dy).gated_activation_backward(d[x], d[factor], dy, x.elements(),
                                                        factor.elements(), kind, size);
                });
}

}  // namespace fovea
