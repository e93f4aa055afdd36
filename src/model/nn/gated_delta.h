#pragma once

#include "cache/page_pool.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea::model {

// Linear attention with the gated delta rule; see DeltaSpec. H heads with values of width V, G key
// heads of width D; with the steps s = softplus(decay(x)):
//   q, k, v = SiLU(convolution(query(x), key(x), value(x)))
//   o = linear_attention(q / |q| / sqrt(D), k / |k|, v, sigmoid(beta(x)), -exp(rate) s)
//   y = output(RMSNorm(o) SiLU(gate(x)))
struct GatedDelta {
  static constexpr const char* kName = "delta";
  static constexpr bool kAttends = false;
  DeltaSpec spec;
  Linear query, key, value, gate, beta, decay;
  Linear output;
  Parameter query_convolution, key_convolution, value_convolution;  // [G D or H V, K]
  Parameter rate;                                                   // [H]
  Parameter norm;                                                   // [V]
  int64_t layer = 0;

  GatedDelta() = default;
  GatedDelta(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& = {});
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec& stack, double tokens, double pairs);

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& residual = {}) const;
  static bool reads_bf16() { return false; }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    query.each(f, name + ".query");
    key.each(f, name + ".key");
    value.each(f, name + ".value");
    visit(f, name + ".query_convolution", query_convolution);
    visit(f, name + ".key_convolution", key_convolution);
    visit(f, name + ".value_convolution", value_convolution);
    gate.each(f, name + ".gate");
    beta.each(f, name + ".beta");
    decay.each(f, name + ".decay");
    visit(f, name + ".rate", rate);
    visit(f, name + ".norm.weight", norm);
    output.each(f, name + ".output");
  }

 private:
  struct Mixed {
    Tensor query, key, value;  // [B, T, ...]
  };
  Mixed convolved(const Mixed& x, const Pass& pass) const;
  Tensor attended(const Mixed& x, const Tensor& beta, const Tensor& decay, const Pass& pass) const;
};

}  // namespace fovea::model
