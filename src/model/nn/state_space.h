#pragma once

#include "cache/page_pool.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea::model {

// The state space model of Mamba-2; see StateSpaceSpec. H heads of width P, G pairs of B and C of
// width N, with the steps s = softplus(step(x)):
//   v, k, q = SiLU(convolution(value(x), key(x), query(x)))
//   o = linear_attention(q, k, s v, -exp(rate) s) + skip v, without the delta rule
//   y = output(RMSNorm(o SiLU(gate(x))))
// k and q are B and C in the paper, which shows that this is linear attention (3 and 4).
struct StateSpace {
  static constexpr const char* kName = "state_space";
  static constexpr bool kAttends = false;
  StateSpaceSpec spec;
  float epsilon = 0;  // of the norm
  Linear value, key, query, gate, step, output;
  Parameter value_convolution, key_convolution, query_convolution;  // [H P or G N, K]
  Parameter value_convolution_bias, key_convolution_bias, query_convolution_bias;
  Parameter rate, skip;  // [H]
  Parameter norm;        // [H P]
  int64_t layer = 0;

  StateSpace() = default;
  StateSpace(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& = {});
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec& stack, double tokens, double pairs);

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& residual = {}) const;
  static bool reads_bf16() { return false; }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    value.each(f, name + ".value");
    key.each(f, name + ".key");
    query.each(f, name + ".query");
    visit(f, name + ".value_convolution", value_convolution);
    visit(f, name + ".key_convolution", key_convolution);
    visit(f, name + ".query_convolution", query_convolution);
    visit(f, name + ".value_convolution_bias", value_convolution_bias);
    visit(f, name + ".key_convolution_bias", key_convolution_bias);
    visit(f, name + ".query_convolution_bias", query_convolution_bias);
    gate.each(f, name + ".gate");
    step.each(f, name + ".step");
    visit(f, name + ".rate", rate);
    visit(f, name + ".skip", skip);
    visit(f, name + ".norm.weight", norm);
    output.each(f, name + ".output");
  }

 private:
  Tensor attended(const Tensor& v, const Tensor& k, const Tensor& q, const Tensor& steps,
                  const Pass& pass) const;
  Tensor normed(const Tensor& x) const;
};

}  // namespace fovea::model
