#include <cmath>

#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {

Tensor scale(const Tensor& x, float factor) {
  Tensor y = empty_like(x);
  kernels(x).scale(y, x, factor, x.size());
  return record(y, {x}, [factor, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).scale(d[x], dy, factor, dy.size());
  });
}

Tensor shift(const Tensor& x, float offset) {
  Tensor y = empty_like(x);
  kernels(x).add(y, x, full(x.shape(), offset, x.dtype()), x.size());
  return record(y, {x}, [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

}  // namespace fovea
