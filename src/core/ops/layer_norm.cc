#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, NormEpsilon epsilon,
                  DType out) {
  const Rows r = rows_of(x);
  check(weight.shape() == Shape{r.width} && (!bias || bias.shape() == Shape{r.width}),
        "layer_norm: weight is {}, bias is {}; expected [{}], the last axis of x", weight.shape(),
        bias.shape(), r.width);
  Tensor y = empty(x.shape(), out, x.device());
  if (!recording()) {
    kernels(x).layer_norm(y, {}, {}, x, weight, bias, epsilon, r);
    return y;
  }
  // scale = 1 / deviation, including epsilon; mean and scale are kept for the backward pass.
  Tensor mean = statistics(x, r), scale = statistics(x, r);
  kernels(x).layer_norm(y, mean, scale, x, weight, bias, epsilon, r);
  y.set_recipe([=, shape = x.shape(), x = Saved(x)] {
    const Tensor input = x.elements();
    Tensor again = empty(shape, out, input.device());
    kernels(mean).layer_norm(again, {}, {}, input, weight, bias, epsilon, r);
    return again;
  });
  return record(
      y, {x, weight, bias}, [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
        // with xh = (x - mean) * scale:  dx = scale * (w*dy - mean(w*dy) - xh * mean(w*dy*xh)),
        // where the last mean is multiplied by (deviation + epsilon) / deviation if epsilon is
        // outside the root; dweight = sum over rows of dy * xh,  dbias = sum over rows of dy
        kernels(mean).layer_norm_backward(d[x], d[weight], d[bias], dy, x.elements(), mean, scale,
                                          weight, epsilon, {r.count, r.width, units.of(r.count)});
      });
}

}  // namespace fovea
