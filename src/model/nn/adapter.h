#pragma once

#include "nn/parameter.h"
#include "nn/pass.h"
#include "ops/ops.h"

namespace fovea::model {

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
  Dropout input_dropout;  // probability and substream of the dropout of the adapter's input
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

// The matrix of a weight: f32, or f64 for f64.
Tensor dense(const Parameter& weight);

}  // namespace fovea::model
