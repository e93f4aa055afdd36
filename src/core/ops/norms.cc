// Norms of rows.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/host_values.h"
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

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float epsilon,
                  DType out) {
  return layer_norm(x, weight, bias, NormEpsilon(epsilon), out);
}

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

Tensor inverse_row_lengths(const Tensor& x) {
  check(x.rank() == 2, "inverse_row_lengths: x is {}; expected [R, C]", x.shape());
  const int64_t width = x.dim(1);
  const bool wide = working_type(x) == DType::f64;
  const double most = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  std::vector<double> lengths(static_cast<size_t>(x.dim(0)));
  parallel_tasks(x.dim(0), [&](int64_t r) {
    const double sum = kernels(x).sum_of_squares(at(In(x), r * width), width);
    lengths[static_cast<size_t>(r)] = sum > 0 ? std::min(1 / std::sqrt(sum), most) : 0;
  });
  const auto length = [&](int64_t r) { return lengths[static_cast<size_t>(r)]; };
  const Tensor y =
      wide ? tensor_from<double>({x.dim(0)}, length) : tensor_from<float>({x.dim(0)}, length);
  return y.to(x.device());
}

}  // namespace fovea
