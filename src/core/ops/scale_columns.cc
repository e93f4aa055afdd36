#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor scale_columns(const Tensor& x, const Tensor& factors, const Tensor& bias) {
  const Rows r = rows_of(x);
  check(factors.shape() == Shape{r.width} && (!bias || bias.shape() == Shape{r.width}),
        "scale_columns: factors are {}, bias is {}; expected [{}], the last axis of x",
        factors.shape(), bias.shape(), r.width);
  Tensor y = empty_like(x);
  kernels(x).scale_columns(y, x, factors, bias, r);
  return record(y, {x, factors, bias},
                [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
                  // dx = dy * factors,   dfactors = sum over rows of dy * x,   dbias = that of dy
                  const Kernels& k = kernels(dy);
                  const Rows rows{r.count, r.width, units.of(r.count)};
                  if (d.wants(bias)) k.sum_rows(d[bias], dy, rows);
                  if (d.wants(factors)) {
                    const Tensor products = empty(dy.shape(), working_type(dy), dy.device());
                    k.multiply(products, dy, x.elements(), dy.size());
                    k.sum_rows(d[factors], products, rows);
                  }
                  if (d.wants(x)) k.scale_columns(d[x], dy, factors, {}, r);
                });
}

}  // namespace fovea
