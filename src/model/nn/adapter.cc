#include "nn/adapter.h"

#include "ops/common.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::model {

Tensor dense(const Parameter& weight) {
  if (weight.packed) return weight.packed.floats().to(weight.packed.device());
  return weight.value.dtype() == DType::bf16 ? convert(weight.value, DType::f32) : weight.value;
}

namespace {

// W + scale B A, of W's dtype
Tensor sum_of(const Tensor& weight, const LowRankAdapter& adapter) {
  const Tensor &down = adapter.down.value, &up = adapter.up.value;
  const Tensor product = empty_like(weight);
  kernels(weight).gemm(product, up, down, {}, {up.dim(0), down.dim(1), up.dim(1), false, false});
  return add(weight, scale(product, adapter.scale));
}

// 1 / the lengths of the rows of W + scale B A, without a gradient.   -> [out]
Tensor inverse_lengths_of(const Parameter& weight, const LowRankAdapter& adapter) {
  const NoGradient off;
  return inverse_row_lengths(sum_of(dense(weight), adapter));
}

// y[r] = factors[r] * x[r]
Tensor scale_rows(const Tensor& x, const Tensor& factors) {
  const Tensor y = empty_like(x);
  const int64_t width = x.dim(1);
  const HostValues<float> all(factors);
  for (int64_t r = 0; r < x.dim(0); ++r)
    kernels(x).scale(at(Out(y), r * width), at(In(x), r * width), all[r], width);
  return y;
}

}  // namespace

Tensor LowRankAdapter::change(const Tensor& x, const Pass& pass) const {
  const Tensor input =
      dropout(x, pass.dropout_at(input_dropout.probability, input_dropout.substream));
  const Tensor y = fovea::linear(fovea::linear(input, down.value), up.value);
  return scale == 1 ? y : fovea::scale(y, scale);
}

Tensor LowRankAdapter::joined(const Tensor& x, const Parameter& weight, const Parameter& bias,
                              const Pass& pass) const {
  const LowRank low = {
      dropout(x, pass.dropout_at(input_dropout.probability, input_dropout.substream)), down.value,
      up.value, scale};
  return weight.packed ? adapted_linear(x, weight.packed, bias.value, low)
                       : adapted_linear(x, weight.value, bias.value, low);
}

void LowRankAdapter::keep_lengths(const Parameter& weight) {
  inverse_lengths = inverse_lengths_of(weight, *this);
}

Tensor LowRankAdapter::factors(const Parameter& weight) const {
  if (fixed) return magnitude.value;
  return multiply(magnitude.value,
                  inverse_lengths ? inverse_lengths : inverse_lengths_of(weight, *this));
}

Tensor LowRankAdapter::merged(const Parameter& weight) const {
  const NoGradient off;
  const Tensor matrix = dense(weight);
  if (!scales()) return sum_of(matrix, *this);
  const Tensor f = factors(weight);
  return fixed ? sum_of(scale_rows(matrix, f), *this) : scale_rows(sum_of(matrix, *this), f);
}

Tensor LowRankAdapter::output(const Tensor& product, const Tensor& x, const Parameter& weight,
                              const Parameter& bias, const Pass& pass) const {
  const Tensor added = change(x, pass);
  if (!scales()) return add(product, added);
  const Tensor f = factors(weight);
  return fixed ? add(scale_columns(product, f, bias.value), added)
               : scale_columns(add(product, added), f, bias.value);
}

}  // namespace fovea::model
