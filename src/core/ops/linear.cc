#include "base/error.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "ops/weights.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// `weight` is a Tensor or a PackedWeight, which gets no gradient.
template <class Weight>
Tensor linear_with(const Tensor& x, const Weight& weight, const Tensor& bias, DType out) {
  const Shape matrix = shape_of(weight);
  check(matrix.size() == 2 && x.rank() >= 1 && x.dim(-1) == matrix[1],
        "linear: weight is {}, x is {}; expected [N, C] and [..., C]", matrix, x.shape());
  check(!bias || bias.shape() == Shape{matrix[0]},
        "linear: bias is {}, weight is {}; expected [N] and [N, C]", bias.shape(), matrix);
  const int64_t outputs = matrix[0], width = matrix[1];
  Shape shape = x.shape();
  shape.back() = outputs;
  Tensor y = empty(shape, out, x.device());
  const int64_t count = rows_of(y).count;
  multiply(kernels(x), y, x, weight, bias, {count, outputs, width, false, true});

  if (!recording()) return y;
  std::vector<Tensor> inputs = {x, bias};
  if constexpr (kIsDense<Weight>) inputs.push_back(weight);
  bool trains_weight = false;  // else the elements of x are not needed
  if constexpr (kIsDense<Weight>) trains_weight = weight.wants_gradient();
  return record(y, inputs,
                [=, x = trains_weight ? Saved(x) : Saved::slot(x), units = row_units()](
                    const Tensor& gradient, Gradients& d) {
                  // dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
                  const Tensor& input = x;
                  const Tensor dy = in_dtype(gradient, input.dtype());
                  const Kernels& k = kernels(dy);
                  if (d.wants(bias))
                    k.sum_rows(d[bias], gradient, {count, outputs, units.of(count)});
                  if constexpr (kIsDense<Weight>) {
                    if (d.wants(weight))
                      k.gemm(d[weight], dy, x.elements(), {},
                             {outputs, width, count, true, false, units.of(count)});
                  }
                  if (d.wants(input))
                    multiply(k, d[input], dy, weight, {}, {count, width, outputs, false, false});
                });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, DType out) {
  return linear_with(x, weight, bias, out);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return linear(x, weight, bias, x.dtype());
}

Tensor exact_linear(const Tensor& x, const PackedWeight& weight, const Tensor& bias, DType out) {
  return linear_with(x, weight, bias, out);
}

}  // namespace fovea
