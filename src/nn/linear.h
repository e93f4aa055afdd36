#pragma once

#include <array>

#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea {

// y = x weight^T + bias, where the weight may be packed.   x [..., in] -> [..., out] of dtype `out`
inline Tensor linear(const Tensor& x, const Parameter& weight, const Parameter& bias, DType out) {
  return weight.packed ? linear(x, weight.packed, bias.value, out)
                       : linear(x, weight.value, bias.value, out);
}

// A low-rank adapter (LoRA) of a matrix W (Hu et al. 2021): W + (alpha / rank) up down.
struct LowRankAdapter {
  Parameter down, up;  // [rank, in], [out, rank]; empty = no adapter
  float scale = 1;     // alpha / rank

  bool present() const { return down.present(); }
  Tensor added_to(const Tensor& y, const Tensor& x) const {
    return present() ? add(y, fovea::scale(linear(linear(x, down.value), up.value), scale)) : y;
  }
};

// y = x weight^T + bias, with an adapter of the weight if there is one.   x [..., in] -> [...,
// out]
struct Linear {
  Parameter weight, bias;
  LowRankAdapter adapter;

  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias, Role role = Role::matrix)
      : weight{{out, in}, role, {}}, bias{with_bias ? Shape{out} : Shape{}, Role::bias, {}} {}

  Tensor operator()(const Tensor& x) const {
    return adapter.added_to(linear(x, weight, bias, x.dtype()), x);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".weight", weight);
    visit(f, name + ".bias", bias);
    visit(f, name + ".adapter.down", adapter.down);
    visit(f, name + ".adapter.up", adapter.up);
  }
};

// Adds an adapter that does not change the output yet: `down` is random, `up` zero. Does not change
// which of the layer's own parameters are trainable.
void add_adapter(Linear& layer, int64_t rank, float alpha, uint64_t seed);

// Applies several layers to the same x. If all multiply in the fast arithmetic of packed weights,
// consecutive layers of the same format and group size become one product. Otherwise each layer is
// applied separately, so that gradients are added in the same order for dense and packed weights.
template <class... Layers>
std::array<Tensor, sizeof...(Layers)> all_of(const Tensor& x, const Layers&... layers) {
  const auto fast = [](const PackedWeight& w) { return w && !w.multiplies_exactly(); };
  if (!(fast(layers.weight.packed) && ...)) return {layers(x)...};
  std::vector<Tensor> y = linear(x, {{layers.weight.packed, layers.bias.value}...}, x.dtype());
  size_t i = 0;
  const auto next = [&](const LowRankAdapter& adapter) { return adapter.added_to(y[i++], x); };
  return {next(layers.adapter)...};
}

}  // namespace fovea
