#include "base/error.h"
#include "ops/in_dtype.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out) {
  check(weight.rank() == 2 && x.rank() >= 1 && x.dim(-1) == weight.dim(1),
        "linear: weight is {}, x is {}; expected [N, C] and [..., C]", weight.shape(), x.shape());
  check(!bias || bias.shape() == Shape{weight.dim(0)},
        "linear: bias is {}, weight is {}; expected [N] and [N, C]", bias.shape(), weight.shape());
  const int64_t outputs = weight.dim(0), width = weight.dim(1);
  Shape shape = x.shape();
  shape.back() = outputs;
  Tensor y = empty(shape, out, x.device());
  const int64_t count = rows_of(y).count;
  kernels(x).gemm(y, x, in_dtype(weight, x.dtype()), bias, {count, outputs, width, false, true});

  if (!recording()) return y;
  return record(y, {x, weight, bias},
                [=, x = Saved(x), units = row_units()](const Tensor& gradient, Gradients& d) {
                  // dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
                  const Tensor& input = x;
                  const Tensor dy = in_dtype(gradient, input.dtype());
                  const Kernels& k = kernels(dy);
                  if (d.wants(bias))
                    k.sum_rows(d[bias], gradient, {count, outputs, units.of(count)});
                  if (d.wants(weight))
                    k.gemm(d[weight], dy, x.elements(), {},
                           {outputs, width, count, true, false, units.of(count)});
                  if (d.wants(input))
                    k.gemm(d[input], dy, in_dtype(weight, dy.dtype()), {},
                           {count, width, outputs, false, false});
                });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear(x, weight, bias, x.dtype());
}

}  // namespace fovea
