#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor scale(const Tensor& x, float factor) {
  Tensor y = empty_like(x);
  kernels(x).scale(y, x, factor, x.size());
  return record(y, {x}, [factor, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).scale(d[x], dy, factor, dy.size());
  });
}

}  // namespace fovea
