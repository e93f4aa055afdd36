#pragma once

#include <algorithm>
#include <array>

#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea {

// y = x weight^T + bias, with the weight in its stored form.   x [..., in] -> [..., out] of dtype
// `out`
inline Tensor linear(const Tensor& x, const Parameter& weight, const Parameter& bias, DType out) {
  return weight.packed ? linear(x, weight.packed, bias.value, out)
                       : linear(x, weight.value, bias.value, out);
}

// y = x weight^T + bias.   x [..., in] -> [..., out]
struct Linear {
  Parameter weight, bias;

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, Role role = Role::matrix)
      : weight{{out, in}, role, {}}, bias{with_bias ? Shape{out} : Shape{}, Role::bias, {}} {}

  Tensor operator()(const Tensor& x) const { return linear(x, weight, bias, x.dtype()); }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
  }
};

// Applies several layers to the same x, in one product if they are packed.
template <class... Layers>
std::array<Tensor, sizeof...(Layers)> all_of(const Tensor& x, const Layers&... layers) {
  if (!(layers.weight.packed && ...)) return {layers(x)...};
  std::vector<Tensor> y = linear(x, {{layers.weight.packed, layers.bias.value}...}, x.dtype());
  std::array<Tensor, sizeof...(Layers)> results;
  std::move(y.begin(), y.end(), results.begin());
  return results;
}

}  // namespace fovea
