#pragma once

#include <array>

#include "nn/parameter.h"
#include "nn/pass.h"
#include "ops/ops.h"

namespace fovea::model {

// y = x weight^T + bias, where the weight may be packed.   x [..., in] -> [..., out] of dtype `out`
inline Tensor linear(const Tensor& x, const Parameter& weight, const Parameter& bias, DType out) {
  return weight.packed ? fovea::linear(x, weight.packed, bias.value, out)
                       : fovea::linear(x, weight.value, bias.value, out);
}

// A low-rank adapter of a matrix W (LoRA; Hu et al. 2021): W + scale B A, where B is `up`, A is
// `down`, and scale is alpha / rank, or alpha / sqrt(rank) (rsLoRA; Kalajdzievski 2023). With a
// magnitude m (DoRA; Liu et al. 2024, eq. 5), row i of this sum is multiplied by f_i = m_i / its
// length; the gradient counts the length as a constant, as in section 4.3 of the paper.
// If `fixed`, for inference only: f W + B A, where `magnitude` contains the factors f.
struct LowRankAdapter {
  Parameter down, up;   // [rank, in], [out, rank]; empty = no adapter
  Parameter magnitude;  // [out]; empty = 1, without DoRA
  float scale = 1;
  bool fixed = false;
  Dropout place;  // probability and substream of the dropout of the adapter's input
  // Of DoRA, while the adapter is not trained: 1 / the lengths of the rows, computed once.
  Tensor inverse_lengths;

  bool present() const { return down.present(); }
  // Returns whether the factors f change the product with W, which then has no bias.
  bool scales() const { return magnitude.present(); }
  // Returns whether one op computes the layer's product and this adapter: in training, where it
  // saves time. At other times, the product is also used without the adapter.
  bool joins(const Parameter& weight) const {
    return present() && !scales() && down.value.wants_gradient() &&
           (!weight.packed || weight.packed.multiplies_exactly());
  }
  // scale B A x.   x [..., in] -> [..., out]
  Tensor change(const Tensor& x, const Pass& pass) const;
  // x weight^T + bias + change(x), if the adapter joins(weight).   x [..., in] -> [..., out]
  Tensor joined(const Tensor& x, const Parameter& weight, const Parameter& bias,
                const Pass& pass) const;
  // Returns the output of a layer with this adapter, given its product with x, plus the bias unless
  // the adapter scales().
  Tensor output(const Tensor& product, const Tensor& x, const Parameter& weight,
                const Parameter& bias, const Pass& pass) const;
  // Sets inverse_lengths. Later changes of the values or of the weight would not be seen.
  void keep_lengths(const Parameter& weight);
  // The factors f of the rows of `weight`.   -> [out]
  Tensor factors(const Parameter& weight) const;
  // The matrix with the adapter: f (W + scale B A), or f W + B A if `fixed`. No gradient.
  Tensor merged(const Parameter& weight) const;  // -> f32 (f64 for f64) [out, in]
};

// y = x weight^T + bias, with an adapter of the weight if there is one. `pass` is for the
// adapter's dropout.   x [..., in] -> [..., out]
struct Linear {
  Parameter weight, bias;
  LowRankAdapter adapter;
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
  Tensor operator()(const Tensor& x, const Pass& pass, DType out) const {
    probe_product(pass, weight, x);
    if (adapter.joins(weight)) return adapter.joined(x, weight, bias, pass);
    return adapted(product(x, product_bias(), out), x, pass);
  }

  // Whether x is only read by a product that rounds it to bf16, in inference.
  bool reads_bf16() const {
    return weight.packed && weight.packed.matrix().format == WeightFormat::bf16 &&
           is_only_packed({});
  }

  // f(y); one kernel computes both if nothing comes between them.
  Tensor activated(const Tensor& x, Activation f, const Pass& pass) const {
    if (!is_only_packed(pass)) return activation((*this)(x, pass), f);
    return fovea::linear(x, {{weight.packed, bias.value, f}}, x.dtype())[0];
  }
  // The last layer of a sublayer: y, or residual + y if there is a residual.
  Tensor added_to(const Tensor& residual, const Tensor& x, const Pass& pass) const {
    const DType out = pass.added_type(x.dtype());
    if (!residual) return (*this)(x, pass, out);
    if (!is_only_packed(pass) || out != residual.dtype())
      return add(residual, (*this)(x, pass, out));
    return fovea::linear(x, {{weight.packed, bias.value, {}, residual}}, out)[0];
  }

  // Returns x weight^T + added.
  Tensor product(const Tensor& x, const Tensor& added, DType out) const {
    return weight.packed ? fovea::linear(x, weight.packed, added, out)
                         : fovea::linear(x, weight.value, added, out);
  }
  // Returns the bias that belongs to the product with the weight: none with DoRA, whose factors
  // apply to the product without the bias.
  const Tensor& product_bias() const;
  // Returns the layer's output, given the product of x with the weight, plus product_bias().
  Tensor adapted(const Tensor& product, const Tensor& x, const Pass& pass) const;

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

 private:
  // Whether the layer is one product in the fast arithmetic of packed weights, without a probe.
  bool is_only_packed(const Pass& pass) const {
    return weight.packed && !weight.packed.multiplies_exactly() && !adapter.present() &&
           alternatives.empty() && pass.probe == nullptr;
  }
  // Replaces those rows of `product` by their outputs with an alternative.
  void adapt_rows(const Tensor& product, const Tensor& x, const AdaptedRows& some,
                  const Pass& pass) const;
};

struct AdapterShape {
  int64_t rank = 0;
  float scale = 1, dropout = 0;
  bool dora = false;
  // Number of the adapter in its model: the substream of its random numbers.
  uint32_t index = 0;
};
// Adds an adapter without values. Does not change which of the layer's own parameters are
// trainable. Throws InvalidArgument if the layer has no weight or the rank is below 1.
void add_adapter(Linear& layer, const AdapterShape& shape);
// Sets the initial values, which do not change the output, as PEFT does: A is uniform in
// +-1 / sqrt(in) (He et al. 2015 with a slope of sqrt(5)), B is zero, m is the length of each row
// of the weight.
void initialise_adapter(Linear& layer, uint64_t seed);

// Applies several layers to the same x. If all multiply in the fast arithmetic of packed weights,
// consecutive layers of the same format and group size become one product. Otherwise each layer is
// applied separately, so that gradients are added in the same order for dense and packed weights.
template <class... Layers>
std::array<Tensor, sizeof...(Layers)> all_of(const Tensor& x, const Pass& pass,
                                             const Layers&... layers) {
  const auto fast = [](const PackedWeight& w) { return w && !w.multiplies_exactly(); };
  if (!(fast(layers.weight.packed) && ...)) return {layers(x, pass)...};
  (probe_product(pass, layers.weight, x), ...);
  const std::vector<Tensor> y =
      linear(x, {{layers.weight.packed, layers.product_bias()}...}, x.dtype());
  size_t i = 0;
  return {layers.adapted(y[i++], x, pass)...};
}

}  // namespace fovea::model
