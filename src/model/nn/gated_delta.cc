#include "nn/gated_delta.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nn/gated_convolution.h"
#include "nn/packed_linear.h"

namespace fovea::model {
namespace {

constexpr float kLeastLength = 1e-6f;  // added to the squared length of a query or key

// x [B, T, heads D] -> [B, T, heads, D], of length 1
Tensor unit_heads(const Tensor& x, int64_t heads) {
  const int64_t D = x.dim(2) / heads;
  const auto width = static_cast<float>(D);
  // The root of the sum of squares is sqrt(D) times that of their mean.
  const Tensor gain = full({D}, 1 / std::sqrt(width), working_type(x)).to(x.device());
  return rms_norm(x.view({x.dim(0), x.dim(1), heads, D}), gain, kLeastLength / width, x.dtype());
}

}  // namespace

GatedDelta::GatedDelta(const StackSpec& stack, int64_t width, int64_t layer_, const Dropout&)
    : spec(stack.delta), layer(layer_) {
  const int64_t keys = spec.key_heads * spec.key_width, values = spec.heads * spec.value_width;
  query = Linear(width, keys, false);
  key = Linear(width, keys, false);
  value = Linear(width, values, false);
  gate = Linear(width, values, false);
  beta = Linear(width, spec.heads, false);
  decay = Linear(width, spec.heads, true);
  decay.bias.role = Role::decay_step;
  output = Linear(values, width, false, Role::residual_matrix);
  query_convolution = {{keys, spec.convolution}, Role::convolution, {}};
  key_convolution = query_convolution;
  value_convolution = {{values, spec.convolution}, Role::convolution, {}};
  rate = {{spec.heads}, Role::decay_rate, {}};
  norm = {{spec.value_width}, Role::gain, {}};
}

PagePool::Layer GatedDelta::cached(const StackSpec& stack, int64_t, DType) {
  const DeltaSpec& d = stack.delta;
  PagePool::Layer layer;
  layer.chunk = {.heads = d.heads,
                 .key_heads = d.key_heads,
                 .width = d.key_width,
                 .value_width = d.value_width};
  layer.inputs = 2 * d.key_heads * d.key_width + d.heads * d.value_width;
  // A token reads the inputs of the convolution, and the chunk of the token before it.
  layer.reach = {.window = std::max(d.convolution, int64_t{2})};
  return layer;
}

// The inputs and outputs of the convolutions and of SiLU, unit queries, the gate with its outputs,
// and what linear attention keeps.
double GatedDelta::kept_bytes(const StackSpec& stack, int64_t, double element) {
  const DeltaSpec& d = stack.delta;
  const auto keys = static_cast<double>(d.key_heads * d.key_width),
             values = static_cast<double>(d.heads * d.value_width);
  const double state = values * static_cast<double>(d.key_width) / kChunkTokens;
  return element * (3 * (2 * keys + values) + 2 * keys + 4 * values) +
         4 * (keys + values + state + 8 * static_cast<double>(d.heads));
}

double GatedDelta::flops(const StackSpec& stack, double tokens, double) {
  const PagePool::Layer layer = cached(stack, 0, DType::f32);
  return tokens * (linear_attention_flops(layer.chunk) +
                   2 * static_cast<double>(layer.inputs * stack.delta.convolution));
}

GatedDelta::Mixed GatedDelta::convolved(const Mixed& x, const Pass& pass) const {
  const auto part = [&](const Tensor& y, const Parameter& weight, int64_t column) {
    return activation(model::convolved(y, weight.value, {}, pass, layer, column), Activation::silu);
  };
  const int64_t keys = x.query.dim(2);
  return {part(x.query, query_convolution, 0), part(x.key, key_convolution, keys),
          part(x.value, value_convolution, 2 * keys)};
}

Tensor GatedDelta::attended(const Mixed& x, const Tensor& betas, const Tensor& decays,
                            const Pass& pass) const {
  const Tensor q = unit_heads(x.query, spec.key_heads), k = unit_heads(x.key, spec.key_heads),
               v = x.value.view({x.value.dim(0), x.value.dim(1), spec.heads, spec.value_width});
  LinearAttentionOptions options;
  options.scale = 1 / std::sqrt(static_cast<float>(spec.key_width));
  options.tiled = spec.tiled;
  if (pass.cache == nullptr) options.valid = tokens_of(pass);
  if (pass.cache == nullptr) return linear_attention(q, k, v, betas, decays, options);
  return linear_attention(q, k, v, betas, decays, pass.cache->linear_texts(layer), options);
}

Tensor GatedDelta::operator()(const Tensor& x, const Pass& pass, const Tensor& residual) const {
  check(pass.mask.documents == nullptr,
        "gated delta rule: the mask divides rows into documents; expected one document per row");
  const int64_t B = x.dim(0), T = x.dim(1);
  const auto [q, k, v, z, b, a] = all_of(x, pass, query, key, value, gate, beta, decay);
  const DType working = working_type(x);
  const Tensor betas = scale(activation(cast(b, working), Activation::sigmoid),
                             spec.doubled ? 2.0f : 1.0f);  // [B, T, H]
  const Tensor decays =                                    // -exp(rate) softplus(a)
      scale_columns(log_sigmoid(scale(cast(a, working), -1)), exp(rate.value));
  const Tensor heads = attended(convolved({q, k, v}, pass), betas, decays, pass);
  const Tensor normed = rms_norm(heads, norm.value, spec.epsilon, heads.dtype());  // [B, T, H, V]
  const Tensor mixed =
      gated_activation(z, normed.view({B, T, spec.heads * spec.value_width}), Activation::silu);
  return added_to(residual, output, mixed, pass);
}

}  // namespace fovea::model
