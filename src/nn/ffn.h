#pragma once

#include <vector>

#include "fovea/spec.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea {

// y = down(f(up(x))), or gated: y = down(f(gate(x)) * up(x)) (Shazeer 2020); or a mixture of
// experts, each of which is such a layer (Shazeer et al. 2017).   x [B, T, C] -> [B, T, C]
struct FeedForward {
  Linear gate, up, down;
  ExpertsSpec spec;
  Linear router;  // [E, C]
  struct Expert {
    Linear gate, up, down;
  };
  std::vector<Expert> experts;
  Activation kind = Activation::gelu_tanh;
  bool gated = false;
  int64_t layer = 0;

  FeedForward() = default;
  FeedForward(const StackSpec& stack, int64_t width, int64_t layer);

  bool present() const { return up.weight.present() || !experts.empty(); }
  Tensor operator()(const Tensor& x, const Pass& pass) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    gate.each(f, name + ".gate");
    up.each(f, name + ".up");
    down.each(f, name + ".down");
    router.each(f, name + ".router");
    for (size_t e = 0; e < experts.size(); ++e) {
      const std::string expert = name + ".experts." + std::to_string(e);
      experts[e].gate.each(f, expert + ".gate");
      experts[e].up.each(f, expert + ".up");
      experts[e].down.each(f, expert + ".down");
    }
  }

 private:
  Tensor mix(const Tensor& x, const Pass& pass) const;
};

}  // namespace fovea
