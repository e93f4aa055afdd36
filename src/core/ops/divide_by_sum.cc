#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor divide_by_sum(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels(x).divide_by_sum(y, x, rows_of(x));
  return record(y, {x}, [x = Saved(x)](const Tensor& dy, Gradients& d) {
    // with the sum s of a row:  dx = (dy - (dy . x) / s) / s
    kernels(dy).divide_by_sum_backward(d[x], dy, x.elements(), rows_of(dy));
  });
}

}  // namespace fovea
