#pragma once

#include <vector>

#include "fovea/model/spec.h"
#include "nn/norm.h"
#include "nn/packed_linear.h"
#include "nn/pass.h"

namespace fovea::model {

// The numbers of xIELU: the learned slopes' logits, and two numbers that are not trained; see
// xielu(). All are [1].
struct Xielu {
  Parameter alpha_p, alpha_n, beta, epsilon;

  Xielu() = default;
  explicit Xielu(bool present)
      : alpha_p{present ? Shape{1} : Shape{}, Role::positive_slope, {}},
        alpha_n{alpha_p.shape, Role::negative_slope, {}},
        beta{alpha_p.shape, Role::linear_slope, {}},
        epsilon{alpha_p.shape, Role::least_argument, {}} {}

  bool present() const { return alpha_p.present(); }
  Tensor operator()(const Tensor& x) const {
    return fovea::xielu(x, alpha_p.value, alpha_n.value, beta.value, epsilon.value);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".alpha_p", alpha_p);
    visit(f, name + ".alpha_n", alpha_n);
    visit(f, name + ".beta", beta);
    visit(f, name + ".epsilon", epsilon);
  }
};

// y = down(f(up(x))), or gated: y = down(f(gate(x)) * up(x)) (Shazeer 2020); or a mixture of
// experts, each of which is such a layer (Shazeer et al. 2017), plus the shared expert, which
// processes every token (Dai et al. 2024), times sigmoid(shared_gate(x)) if it has a gate.
// x [B, T, C] -> [B, T, C]
struct FeedForward {
  Linear gate, up, down;
  Norm inner_norm;  // of the input of down
  Xielu xielu;      // instead of `kind`
  ExpertsSpec spec;
  Linear router;             // [E, C]
  Parameter selection_bias;  // [E], added to the router's scores for the choice of experts only
  Parameter sum_bias;        // [C], added to the sum of the chosen experts
  struct Expert {
    Linear gate, up, down;
  };
  std::vector<Expert> experts;
  Expert shared;
  Linear shared_gate;  // [1, C]
  Activation kind = Activation::gelu_tanh;
  bool gated = false;
  float gate_limit = 0, up_offset = 0;
  int64_t layer = 0;

  FeedForward() = default;
  FeedForward(const StackSpec& stack, int64_t width, int64_t layer);

  bool present() const { return up.weight.present() || !experts.empty(); }
  bool has_shared() const { return shared.up.weight.present(); }
  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& residual = {}) const;
  // Whether x may be bf16, see Linear. Not with experts, whose router would read it.
  bool reads_bf16() const {
    return experts.empty() && model::reads_bf16(up) && model::reads_bf16(down) &&
           (!gated || model::reads_bf16(gate));
  }

  Tensor router_logits(const Tensor& tokens) const;  // [R, C] -> f32 (f64 for f64) [R, E]
  Tensor router_scores(const Tensor& logits) const;  // softmax or sigmoid of them, [R, E]
  Routing routing(const Tensor& logits) const;       // the choice of experts, [R, k]
  // Returns the output of the shared expert.   tokens [R, C] -> [R, C]
  Tensor shared_output(const Tensor& tokens, const Pass& pass = {}) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    gate.each(f, name + ".gate");
    up.each(f, name + ".up");
    down.each(f, name + ".down");
    inner_norm.each(f, name + ".inner_norm");
    xielu.each(f, name + ".xielu");
    router.each(f, name + ".router");
    visit(f, name + ".router.selection_bias", selection_bias);
    visit(f, name + ".sum_bias", sum_bias);
    for (size_t e = 0; e < experts.size(); ++e)
      each_of(experts[e], f, name + ".experts." + std::to_string(e));
    each_of(shared, f, name + ".shared");
    shared_gate.each(f, name + ".shared_gate");
  }

 private:
  template <class Visitor>
  static void each_of(Expert& expert, Visitor& f, const std::string& name) {
    expert.gate.each(f, name + ".gate");
    expert.up.each(f, name + ".up");
    expert.down.each(f, name + ".down");
  }
  // f(gate) * up of gated layers, with their limit and offset.
  Tensor gated_product(const Tensor& gate, const Tensor& up) const;
  // f(x), or of gated layers f(x) * factors.
  Tensor activated_inner(const Tensor& x, const Tensor& factors = {}) const;
  Tensor projected(const Tensor& x, const Linear& gate, const Linear& up, const Linear& down,
                   const Pass& pass, const Tensor& residual) const;
  Tensor by_expert(const Tensor& x, const Groups& groups, Linear Expert::* part,
                   const Pass& pass) const;
  // Adds an alternative adapter of each expert to those rows of y that use it.
  void adapt_rows(const Tensor& y, const Tensor& x, const Groups& groups, Linear Expert::* part,
                  const AdaptedRows& some) const;
  Tensor mix(const Tensor& x, const Pass& pass) const;
};

}  // namespace fovea::model
