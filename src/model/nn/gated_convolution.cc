#include "nn/gated_convolution.h"

#include <algorithm>

#include "base/error.h"
#include "nn/packed_linear.h"

namespace fovea::model {

std::vector<Interval> tokens_of(const Pass& pass) {
  const std::vector<Interval>& valid = pass.mask.valid;
  const bool all = std::ranges::all_of(valid, [](const Interval& row) { return row.begin == 0; });
  return all ? std::vector<Interval>() : valid;
}

Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, const Pass& pass,
                 int64_t layer, int64_t column) {
  if (pass.cache == nullptr) return causal_conv(x, weight, bias, tokens_of(pass));
  const KvCache::Inputs before = pass.cache->append_inputs(layer, x, column, weight.dim(1) - 1);
  return causal_conv(x, weight, bias, before.texts);
}

double linear_attention_flops(const LinearAttention& shape) {
  const auto keys = static_cast<double>(shape.width),
             values = static_cast<double>(shape.value_width);
  constexpr double kSeen = (kChunkTokens + 1) / 2.0;  // tokens of the chunk
  const double read = keys * values + kSeen * (keys + values), added = keys * values;
  return 2 * static_cast<double>(shape.heads) * (added + (shape.delta ? 2 : 1) * read);
}

GatedConvolution::GatedConvolution(const StackSpec& stack, int64_t width, int64_t layer_,
                                   const Dropout&)
    : spec(stack.convolution), layer(layer_) {
  before = Linear(width, spec.width, spec.bias);
  after = Linear(width, spec.width, spec.bias);
  value = Linear(width, spec.width, spec.bias);
  output = Linear(spec.width, width, spec.bias, Role::residual_matrix);
  weight = {{spec.width, spec.tokens}, Role::convolution, {}};
  if (spec.bias) bias = {{spec.width}, Role::bias, {}};
}

PagePool::Layer GatedConvolution::cached(const StackSpec& stack, int64_t, DType) {
  PagePool::Layer layer;
  layer.inputs = stack.convolution.width;
  layer.reach = {.window = std::max(stack.convolution.tokens, int64_t{2})};
  return layer;
}

double GatedConvolution::flops(const StackSpec& stack, double tokens, double) {
  const ConvolutionSpec& c = stack.convolution;
  return tokens * 2 * static_cast<double>(c.width * c.tokens);
}

// The three products, the input and output of the convolution, and the gated output.
double GatedConvolution::kept_bytes(const StackSpec& stack, int64_t, double element) {
  return 6 * element * static_cast<double>(stack.convolution.width);
}

Tensor GatedConvolution::operator()(const Tensor& x, const Pass& pass,
                                    const Tensor& residual) const {
  check(pass.mask.documents == nullptr,
        "convolution: the mask divides rows into documents; expected one document per row");
  const auto [b, a, v] = all_of(x, pass, before, after, value);
  const Tensor mixed = convolved(multiply(b, v), weight.value, bias.value, pass, layer, 0);
  return added_to(residual, output, multiply(a, mixed), pass);
}

}  // namespace fovea::model
