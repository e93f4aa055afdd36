#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor shift(const Tensor& x, float offset) {
  Tensor y = empty_like(x);
  kernels(x).shift(y, x, offset, x.size());
  return record(y, {x}, [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

}  // namespace fovea
