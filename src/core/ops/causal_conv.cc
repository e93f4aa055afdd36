#include <vector>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

CausalConv shape_of(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check(x.rank() == 3 && weight.rank() == 2 && weight.dim(0) == x.dim(2) &&
            (!bias || bias.shape() == Shape{x.dim(2)}),
        "causal convolution: x is {}, weight is {}, bias is {}; expected [B, T, C], [C, K] and [C]",
        x.shape(), weight.shape(), bias ? bias.shape() : Shape{});
  return {weight.dim(0), weight.dim(1)};
}

}  // namespace

Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   const std::vector<Interval>& valid) {
  const bool wanted =
      x.wants_gradient() || weight.wants_gradient() || (bias && bias.wants_gradient());
  check(valid.empty() || !wanted || !recording(),
        "causal convolution: a part of the tokens has no gradients; expected NoGradient");
  const CausalConv shape = shape_of(x, weight, bias);
  const int64_t T = x.dim(1), R = x.dim(0) * T, C = shape.width, K = shape.kernel;
  std::vector<ConvText> texts;
  for (int64_t b = 0; b < x.dim(0); ++b) {
    const Interval own = valid.empty() ? Interval{0, T} : valid[static_cast<size_t>(b)];
    texts.push_back({b * T + own.begin, own.end - own.begin, {}});
  }
  const Tensor y = valid.empty() ? empty(x.shape(), x.dtype(), x.device())
                                 : zeros(x.shape(), x.dtype(), x.device());
  kernels(x).causal_conv(y, x, weight, bias ? In(bias) : In{}, texts, shape);
  return record(
      y, {x, weight, bias}, [=, x = Saved(x), units = row_units()](const Tensor& dy, Gradients& d) {
        const Kernels& k = kernels(dy);
        const bool sums = d.wants(weight);
        const Tensor products = sums ? empty({R, C * K}, working_type(dy), dy.device()) : Tensor();
        k.causal_conv_backward(d[x], sums ? Out(products) : Out{}, dy, x.elements(), weight, texts,
                               shape);
        if (sums) k.sum_rows(d[weight], products, {R, C * K, units.of(R)});
        if (d.wants(bias)) k.sum_rows(d[bias], dy, {R, C, units.of(R)});
      });
}

Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias,
                   std::span<const ConvText> texts) {
  check(!recording(), "causal convolution: decoding has no gradients; expected NoGradient");
  const Tensor y = empty(x.shape(), x.dtype(), x.device());
  kernels(x).causal_conv(y, x, weight, bias ? In(bias) : In{}, texts, shape_of(x, weight, bias));
  return y;
}

}  // namespace fovea
