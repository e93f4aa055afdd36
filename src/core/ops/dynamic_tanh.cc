#include "base/error.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor dynamic_tanh(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias,
                    DType out) {
  const Rows r = rows_of(x);
  check(alpha.shape() == Shape{1} && weight.shape() == Shape{r.width} &&
            (!bias || bias.shape() == Shape{r.width}),
        "dynamic_tanh: alpha is {}, weight is {}, bias is {}; expected [1] and [{}], the last axis "
        "of x",
        alpha.shape(), weight.shape(), bias.shape(), r.width);
  Tensor y = empty(x.shape(), out, x.device());
  kernels(x).dynamic_tanh(y, x, alpha, weight, bias, r);
  if (!recording()) return y;
  y.set_recipe([=, shape = x.shape(), x = Saved(x)] {
    const Tensor input = x.elements();
    Tensor again = empty(shape, out, input.device());
    kernels(alpha).dynamic_tanh(again, input, alpha, weight, bias, r);
    return again;
  });
  return record(y, {x, alpha, weight, bias},
                [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
                  // with t = tanh(alpha x) and g = dy * weight * (1 - t^2):  dx = alpha g,
                  // dweight = sum over rows of dy * t,  dbias = that of dy,  dalpha = sum of g * x
                  kernels(alpha).dynamic_tanh_backward(d[x], d[alpha], d[weight], d[bias], dy,
                                                       x.elements(), alpha, weight,
                                                       {r.count, r.width, units.of(r.count)});
                });
}

}  // namespace fovea
