#pragma once

#include <string>
#include <vector>

#include "nn/adapter.h"

namespace fovea::model {

// y = x weight^T + bias, where the weight may be packed, with an adapter of the weight if there is
// one. `pass` is for the adapter's dropout.   x [..., in] -> [..., out]
struct Linear {
  Parameter weight, bias;
  LowRankAdapter adapter;  // see adapted_linear.h
  // For inference, in a layer without `adapter`: the adapters of several models that share the
  // weight; empty = none. Pass::adapted_rows tells which rows of x use which one.
  std::vector<LowRankAdapter> alternatives;

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, Role role = Role::matrix)
      : weight{{out, in}, role, {}}, bias{with_bias ? Shape{out} : Shape{}, Role::bias, {}} {}

  Tensor operator()(const Tensor& x, const Pass& pass = {}) const {
    return (*this)(x, pass, x.dtype());
  }
  // The same with a result of dtype `out`: x's, or another one if the layer reads_bf16().
  Tensor operator()(const Tensor& x, const Pass& pass, DType out) const;

  // A visitor that has a member linear(name, layer) also receives the layer itself.
  // The alternatives are not visited.
  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    if constexpr (requires { f.linear(name, *this); }) f.linear(name, *this);
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
    visit(f, name + ".adapter.down", adapter.down);
    visit(f, name + ".adapter.up", adapter.up);
    visit(f, name + ".adapter.magnitude", adapter.magnitude);
  }
};

// y = x weight^T + bias, where the weight may be packed.   x [..., in] -> [..., out] of dtype `out`
Tensor linear(const Tensor& x, const Parameter& weight, const Tensor& bias, DType out);

}  // namespace fovea::model
