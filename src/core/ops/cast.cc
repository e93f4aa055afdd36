#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  return record(convert(x, dtype), {x},
                [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

}  // namespace fovea
