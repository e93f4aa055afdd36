#pragma once

#include "cache/page_pool.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea::model {

// Returns the tokens of each row of a pass without a cache, if some rows begin later, else nothing:
// tokens after a row's last one have no effect.
std::vector<Interval> tokens_of(const Pass& pass);

// A convolution over the last tokens (causal_conv()) of x [B, T, W]. With a cache, x are the
// elements from `column` on of what the layer keeps of each token.
Tensor convolved(const Tensor& x, const Tensor& weight, const Tensor& bias, const Pass& pass,
                 int64_t layer, int64_t column);

// Returns the operations of linear attention for a token, on average: it reads the state, and the
// tokens of its chunk up to itself, and is added to the state. With the delta rule, it does so with
// its key too.
double linear_attention_flops(const LinearAttention& shape);

// A gated convolution over the last tokens; see ConvolutionSpec.
struct GatedConvolution {
  static constexpr const char* kName = "convolution";
  static constexpr bool kAttends = false;
  ConvolutionSpec spec;
  Linear before, after, value, output;
  Parameter weight, bias;  // [W, K] and [W], where W is the width of the convolution
  int64_t layer = 0;

  GatedConvolution() = default;
  GatedConvolution(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& = {});
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec& stack, double tokens, double pairs);

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& residual = {}) const;
  static bool reads_bf16() { return false; }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    before.each(f, name + ".before");
    after.each(f, name + ".after");
    value.each(f, name + ".value");
    visit(f, name + ".weight", weight);
    if (spec.bias) visit(f, name + ".bias", bias);
    output.each(f, name + ".output");
  }
};

}  // namespace fovea::model
