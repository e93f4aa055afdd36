#pragma once

// Linear layers with packed weights: products that one kernel computes together with what follows.

#include <array>

#include "nn/adapted_linear.h"

namespace fovea::model {

// Whether the layer is one product in the fast arithmetic of packed weights, without a probe.
inline bool is_only_packed(const Linear& layer, const Pass& pass) {
  return layer.weight.packed && !layer.weight.packed.multiplies_exactly() &&
         !layer.weight.ternary && !layer.adapter.present() && layer.alternatives.empty() &&
         pass.probe == nullptr;
}

// Whether x is only read by a product that rounds it to bf16, in inference.
inline bool reads_bf16(const Linear& layer) {
  return layer.weight.packed && layer.weight.packed.matrix().format == WeightFormat::bf16 &&
         is_only_packed(layer, {});
}

// f(y); one kernel computes both if nothing comes between them.
inline Tensor activated(const Linear& layer, const Tensor& x, Activation f, const Pass& pass) {
  if (!is_only_packed(layer, pass)) return activation(layer(x, pass), f);
  return fovea::linear(x, {{layer.weight.packed, layer.bias.value, f}}, x.dtype())[0];
}

// The last layer of a sublayer: y, or residual + y if there is a residual.
inline Tensor added_to(const Tensor& residual, const Linear& layer, const Tensor& x,
                       const Pass& pass) {
  const DType out = pass.added_type(x.dtype());
  if (!residual) return layer(x, pass, out);
  if (!is_only_packed(layer, pass) || out != residual.dtype())
    return add(residual, layer(x, pass, out));
  return fovea::linear(x, {{layer.weight.packed, layer.bias.value, {}, residual}}, out)[0];
}

// Applies several layers to the same x. If all multiply in the fast arithmetic of packed weights,
// consecutive layers of the same format and group size become one product. Otherwise each layer is
// applied separately, so that gradients are added in the same order for dense and packed weights.
template <class... Layers>
std::array<Tensor, sizeof...(Layers)> all_of(const Tensor& x, const Pass& pass,
                                             const Layers&... layers) {
  const auto fast = [](const Parameter& w) {
    return w.packed && !w.packed.multiplies_exactly() && !w.ternary;
  };
  if (!(fast(layers.weight) && ...)) return {layers(x, pass)...};
  (probe_product(pass, layers.weight, x), ...);
  const std::vector<Tensor> y =
      linear(x, {{layers.weight.packed, product_bias(layers)}...}, x.dtype());
  size_t i = 0;
  return {adapted(layers, y[i++], x, pass)...};
}

}  // namespace fovea::model
