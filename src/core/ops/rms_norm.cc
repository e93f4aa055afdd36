#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor rms_norm(const Tensor& x, const Tensor& weight, float epsilon, DType out) {
  const Rows r = rows_of(x);
  check(weight.shape() == Shape{r.width},
        "rms_norm: weight is {}; expected [{}], the last axis of x", weight.shape(), r.width);
  Tensor y = empty(x.shape(), out, x.device());
  if (!recording()) {
    kernels(x).rms_norm(y, {}, x, weight, epsilon, r);
    return y;
  }
  Tensor scale = statistics(x, r);  // scale = 1 / rms, kept for the backward pass
  kernels(x).rms_norm(y, scale, x, weight, epsilon, r);
  y.set_recipe([=, shape = x.shape(), x = Saved(x)] {
    const Tensor input = x.elements();
    Tensor again = empty(shape, out, input.device());
    kernels(scale).rms_norm(again, {}, input, weight, epsilon, r);
    return again;
  });
  return record(y, {x, weight},
                [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
                  // with xh = x * scale:  dx = scale * (w*dy - xh * mean(w*dy*xh)),
                  // dweight = sum over rows of dy * xh
                  kernels(scale).rms_norm_backward(d[x], d[weight], dy, x.elements(), scale, weight,
                                                   {r.count, r.width, units.of(r.count)});
                });
}

}  // namespace fovea
