#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor concat_shared(const Tensor& shared, const Tensor& own) {
  check(shared.rank() == 4 && own.rank() == 4 && shared.dim(0) == own.dim(0) &&
            shared.dim(1) == own.dim(1) && shared.dim(2) == 1 && shared.dtype() == own.dtype(),
        "concat_shared: {} {} and {} {}; expected [B, T, 1, N] and [B, T, H, D] of one dtype",
        name_of(shared.dtype()), shared.shape(), name_of(own.dtype()), own.shape());
  const int64_t B = own.dim(0), T = own.dim(1), H = own.dim(2), N = shared.dim(3), D = own.dim(3);
  const ColumnCopy first{B * T, N, N, 0, N + D, 0, H};
  const ColumnCopy second{B * T * H, D, D, 0, N + D, N, 1};
  Tensor y = empty({B, T, H, N + D}, own.dtype(), own.device());
  kernels(y).copy_columns(y, shared, first);
  kernels(y).copy_columns(y, own, second);
  return record(
      y, {shared, own},
      [=, shared = Saved::slot(shared), own = Saved::slot(own)](const Tensor& dy, Gradients& d) {
        if (d.wants(shared)) kernels(dy).copy_columns_backward(d[shared], dy, first);
        if (d.wants(own)) kernels(dy).copy_columns_backward(d[own], dy, second);
      });
}

}  // namespace fovea
