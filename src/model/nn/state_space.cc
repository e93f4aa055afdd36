#include "nn/state_space.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "nn/gated_convolution.h"
#include "nn/packed_linear.h"

namespace fovea::model {
namespace {

// Repeats the number of each head for its columns.   x [H] -> [H P]
Tensor by_column(const Tensor& x, int64_t width) {
  const Tensor ones = full({width, 1}, 1, x.dtype()).to(x.device());
  return linear(x.view({x.size(), 1}), ones).view({x.size() * width});
}

}  // namespace

StateSpace::StateSpace(const StackSpec& stack, int64_t width, int64_t layer_, const Dropout&)
    : spec(stack.state_space), epsilon(stack.norm.epsilon), layer(layer_) {
  const int64_t values = spec.heads * spec.head_width, states = spec.groups * spec.state_width;
  value = Linear(width, values, false);
  key = Linear(width, states, false);
  query = Linear(width, states, false);
  gate = Linear(width, values, false);
  step = Linear(width, spec.heads, true);
  step.bias.role = Role::decay_step;
  output = Linear(values, width, false, Role::residual_matrix);
  value_convolution = {{values, spec.convolution}, Role::convolution, {}};
  key_convolution = {{states, spec.convolution}, Role::convolution, {}};
  query_convolution = key_convolution;
  if (spec.convolution_bias) {
    value_convolution_bias = {{values}, Role::bias, {}};
    key_convolution_bias = {{states}, Role::bias, {}};
    query_convolution_bias = key_convolution_bias;
  }
  rate = {{spec.heads}, Role::decay_rate, {}};
  skip = {{spec.heads}, Role::gain, {}};
  if (spec.norm) norm = {{values}, Role::gain, {}};
}

PagePool::Layer StateSpace::cached(const StackSpec& stack, int64_t, DType) {
  const StateSpaceSpec& s = stack.state_space;
  PagePool::Layer layer;
  layer.chunk = {.heads = s.heads,
                 .key_heads = s.groups,
                 .width = s.state_width,
                 .value_width = s.head_width,
                 .delta = false};
  layer.inputs = s.heads * s.head_width + 2 * s.groups * s.state_width;
  // A token reads the inputs of the convolution, and the chunk of the token before it.
  layer.reach = {.window = std::max(s.convolution, int64_t{2})};
  return layer;
}

// The inputs and outputs of the convolutions and of SiLU, the gate with its outputs, and what
// linear attention keeps.
double StateSpace::kept_bytes(const StackSpec& stack, int64_t, double element) {
  const StateSpaceSpec& s = stack.state_space;
  const auto keys = static_cast<double>(s.groups * s.state_width),
             values = static_cast<double>(s.heads * s.head_width);
  const double state = values * static_cast<double>(s.state_width) / kChunkTokens;
  return element * (3 * (2 * keys + values) + 5 * values) +
         4 * (keys + values + state + 8 * static_cast<double>(s.heads));
}

double StateSpace::flops(const StackSpec& stack, double tokens, double) {
  const PagePool::Layer layer = cached(stack, 0, DType::f32);
  return tokens * (linear_attention_flops(layer.chunk) +
                   2 * static_cast<double>(layer.inputs * stack.state_space.convolution));
}

Tensor StateSpace::attended(const Tensor& v, const Tensor& k, const Tensor& q, const Tensor& steps,
                            const Pass& pass) const {
  const int64_t B = v.dim(0), T = v.dim(1);
  const Tensor keys = k.view({B, T, spec.groups, spec.state_width}),
               queries = q.view({B, T, spec.groups, spec.state_width}),
               values = v.view({B, T, spec.heads, spec.head_width});
  const Tensor decays = scale_columns(scale(steps, -1), exp(rate.value));
  LinearAttentionOptions options;
  options.delta = false;
  if (pass.cache == nullptr) options.valid = tokens_of(pass);
  const Tensor read = pass.cache == nullptr
                          ? linear_attention(queries, keys, values, steps, decays, options)
                          : linear_attention(queries, keys, values, steps, decays,
                                             pass.cache->linear_texts(layer), options);
  return add(read.view(v.shape()), scale_columns(v, by_column(skip.value, spec.head_width)));
}

Tensor StateSpace::normed(const Tensor& x) const {
  if (!norm.present()) return x;
  if (spec.norm_groups == 1) return rms_norm(x, norm.value, epsilon, x.dtype());
  const int64_t part = x.dim(2) / spec.norm_groups;
  const Tensor gain = full({part}, 1, working_type(x)).to(x.device());
  const Tensor parts = x.view({x.dim(0), x.dim(1), spec.norm_groups, part});
  return scale_columns(rms_norm(parts, gain, epsilon, x.dtype()).view(x.shape()), norm.value);
}

Tensor StateSpace::operator()(const Tensor& x, const Pass& pass, const Tensor& residual) const {
  check(pass.mask.documents == nullptr,
        "state space: the mask divides rows into documents; expected one document per row");
  const auto [z, v, k, q, a] = all_of(x, pass, gate, value, key, query, step);
  const auto mixed = [&](const Tensor& y, const Parameter& weight, const Parameter& bias,
                         int64_t column) {
    return activation(convolved(y, weight.value, bias.value, pass, layer, column),
                      Activation::silu);
  };
  const int64_t values = v.dim(2), states = k.dim(2);
  Tensor steps = scale(log_sigmoid(scale(cast(a, working_type(x)), -1)), -1);  // softplus
  if (spec.least_step > 0 || spec.most_step > 0)
    steps = clip(steps, spec.least_step,
                 spec.most_step > 0 ? spec.most_step : std::numeric_limits<float>::max());
  const Tensor read =
      attended(mixed(v, value_convolution, value_convolution_bias, 0),
               mixed(k, key_convolution, key_convolution_bias, values),
               mixed(q, query_convolution, query_convolution_bias, values + states), steps, pass);
  const auto gated = [&](const Tensor& y) { return gated_activation(z, y, Activation::silu); };
  return added_to(residual, output, spec.norm_first ? gated(normed(read)) : normed(gated(read)),
                  pass);
}

}  // namespace fovea::model
