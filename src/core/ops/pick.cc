#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor pick(const Tensor& x, const Tensor& given) {
  const Tensor columns = given.to(x.device());
  check(x.rank() == 2 && columns.rank() == 2 && columns.dtype() == DType::i32 &&
            columns.dim(0) == x.dim(0),
        "pick: x is {}, columns are {} {}; expected [R, C] and int32 [R, k]", x.shape(),
        name_of(columns.dtype()), columns.shape());
  const Rows rows = rows_of(x);
  const int64_t k = columns.dim(1);
  const int64_t wrong = kernels(x).first_outside(columns, columns.size(), rows.width);
  if (wrong >= 0)
    fail(ErrorKind::InvalidArgument, "pick: column {} at position {}; expected 0 to {}",
         given.to(cpu_device()).data_as<int32_t>()[wrong], wrong, rows.width - 1);
  Tensor y = empty(columns.shape(), x.dtype(), x.device());
  kernels(x).pick(y, x, columns, k, rows);
  return record(y, {x}, [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).pick_backward(d[x], dy, columns, k, rows);
  });
}

}  // namespace fovea
