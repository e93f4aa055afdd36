#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor pick(const Tensor& x, const Tensor& columns) {
  check(x.rank() == 2 && columns.rank() == 2 && columns.dtype() == DType::i32 &&
            columns.dim(0) == x.dim(0),
        "pick: x is {}, columns are {} {}; expected [R, C] and int32 [R, k]", x.shape(),
        name_of(columns.dtype()), columns.shape());
  const Rows rows = rows_of(x);
  const int64_t k = columns.dim(1);
  const auto* indices = columns.data_as<int32_t>();
  const int64_t wrong = kernels(x).first_outside(indices, columns.size(), rows.width);
  if (wrong >= 0)
    fail(ErrorKind::InvalidArgument, "pick: column {} at position {}; expected 0 to {}",
         indices[wrong], wrong, rows.width - 1);
  Tensor y = empty(columns.shape(), x.dtype());
  kernels(x).pick(y, x, indices, k, rows);
  return record(y, {x}, [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).pick_backward(d[x], dy, columns.data_as<int32_t>(), k, rows);
  });
}

}  // namespace fovea
