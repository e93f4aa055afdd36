#include "nn/linear.h"

#include <cmath>

#include "base/error.h"
#include "fovea/core/random.h"
#include "ops/common.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

Tensor dense(const Parameter& weight) {
  if (weight.packed) return weight.packed.floats().to(weight.packed.device());
  return weight.value.dtype() == DType::bf16 ? convert(weight.value, DType::f32) : weight.value;
}

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
  for (int64_t r = 0; r < x.dim(0); ++r)
    kernels(x).scale(at(Out(y), r * width), at(In(x), r * width), factors.data_as<float>()[r],
                     width);
  return y;
}

}  // namespace

Tensor LowRankAdapter::change(const Tensor& x, const Pass& pass) const {
  const Tensor input = dropout(x, pass.dropout_at(place.probability, place.substream));
  const Tensor y = fovea::linear(fovea::linear(input, down.value), up.value);
  return scale == 1 ? y : fovea::scale(y, scale);
}

Tensor LowRankAdapter::joined(const Tensor& x, const Parameter& weight, const Parameter& bias,
                              const Pass& pass) const {
  const LowRank low = {dropout(x, pass.dropout_at(place.probability, place.substream)), down.value,
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

const Tensor& Linear::product_bias() const {
  static const Tensor none;
  return adapter.scales() ? none : bias.value;
}

Tensor Linear::adapted(const Tensor& product, const Tensor& x, const Pass& pass) const {
  const Tensor y = adapter.present() ? adapter.output(product, x, weight, bias, pass) : product;
  if (alternatives.empty()) return y;
  for (const AdaptedRows& some : pass.adapted_rows) adapt_rows(y, x, some, pass);
  return y;
}

void Linear::adapt_rows(const Tensor& product, const Tensor& x, const AdaptedRows& some,
                        const Pass& pass) const {
  const LowRankAdapter& one = alternatives[some.adapter];
  if (!one.present()) return;
  const Tensor in = gather(some.rows, x.view({x.size() / x.dim(-1), x.dim(-1)}));  // [n, in]
  // The factors of DoRA apply to the product without the bias, which is computed again.
  const Tensor plain =
      one.scales()
          ? this->product(in, {}, in.dtype())
          : gather(some.rows,
                   product.view({product.size() / product.dim(-1), product.dim(-1)}));  // [n, out]
  const Tensor out = one.output(plain, in, weight, bias, pass);
  const int64_t bytes = static_cast<int64_t>(out.bytes()) / out.dim(0);
  for (int64_t i = 0; i < out.dim(0); ++i)
    copy_bytes(product, some.rows.data_as<int32_t>()[i] * bytes, out, i * bytes, bytes);
}

void add_adapter(Linear& layer, const AdapterShape& shape) {
  check(layer.weight.present() && shape.rank >= 1,
        "adapter: rank {} of a weight {}; expected at least 1", shape.rank, layer.weight.shape);
  const int64_t out = layer.weight.shape[0], in = layer.weight.shape[1];
  LowRankAdapter& adapter = layer.adapter;
  adapter.down = {{shape.rank, in}, Role::adapter_down, {}};
  adapter.up = {{out, shape.rank}, Role::adapter_up, {}};
  adapter.magnitude = {shape.dora ? Shape{out} : Shape{}, Role::magnitude, {}};
  adapter.scale = shape.scale;
  adapter.fixed = false;
  adapter.place = {};
  adapter.place.probability = shape.dropout;
  adapter.place.substream = kAdapterPlaces + shape.index;
}

void initialise_adapter(Linear& layer, uint64_t seed) {
  LowRankAdapter& adapter = layer.adapter;
  adapter.down.value = empty(adapter.down.shape);
  adapter.up.value = zeros(adapter.up.shape);
  Random random(seed, Stream::init, adapter.place.substream);
  const float bound = 1 / std::sqrt(static_cast<float>(adapter.down.shape[1]));
  float* down = adapter.down.value.data_as<float>();
  for (int64_t i = 0; i < adapter.down.value.size(); ++i)
    down[i] = bound * (2 * random.uniform() - 1);
  if (!adapter.scales()) return;
  const Tensor inverse = inverse_row_lengths(dense(layer.weight));
  adapter.magnitude.value = empty(inverse.shape());
  for (int64_t i = 0; i < inverse.size(); ++i) {
    const float value = inverse.data_as<float>()[i];
    adapter.magnitude.value.data_as<float>()[i] = value > 0 ? 1 / value : 0;
  }
}

}  // namespace fovea::model
