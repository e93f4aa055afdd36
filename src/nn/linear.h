#pragma once

#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea {

// y = x weight^T + bias.   x [..., in] -> [..., out]
struct Linear {
  Parameter weight, bias;

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, Role role = Role::matrix)
      : weight{{out, in}, role, {}}, bias{with_bias ? Shape{out} : Shape{}, Role::bias, {}} {}

  Tensor operator()(const Tensor& x) const { return linear(x, weight.value, bias.value); }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
  }
};

}  // namespace fovea
