#include "ops/ops.h"
#include "ops/statistics.h"
#include "tensor/tape.h"

namespace fovea {

Tensor softmax(const Tensor& x) {
  const Rows r = rows_of(x);
  Tensor y = empty(x.shape(), working_type(x), x.device());
  kernels(x).softmax(y, x, r);
  return record(y, {x}, [r, x = Saved::slot(x), y = y.detach()](const Tensor& dy, Gradients& d) {
    kernels(dy).softmax_backward(d[x], dy, y, r);  // dx = y * (dy - sum(dy * y))
  });
}

}  // namespace fovea
