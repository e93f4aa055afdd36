#include "nn/linear.h"

#include "nn/adapted_linear.h"
#include "ops/ternary.h"

namespace fovea::model {

Tensor linear(const Tensor& x, const Parameter& weight, const Tensor& bias, DType out) {
  if (weight.ternary) {
    const Tensor rounded = round_rows(x);
    return weight.packed ? fovea::linear(rounded, weight.packed, bias, out)
                         : fovea::linear(rounded, round_ternary(weight.value), bias, out);
  }
  return weight.packed ? fovea::linear(x, weight.packed, bias, out)
                       : fovea::linear(x, weight.value, bias, out);
}

Tensor Linear::operator()(const Tensor& x, const Pass& pass, DType out) const {
  probe_product(pass, weight, x);
  if (!weight.ternary && adapter.joins(weight)) return adapter.joined(x, weight, bias, pass);
  return adapted(*this, linear(x, weight, product_bias(*this), out), x, pass);
}

}  // namespace fovea::model
