#pragma once

#include "cache/page_pool.h"
#include "nn/linear.h"
#include "nn/pass.h"
#include "spec/mixers.h"

namespace fovea::model {

// A recurrent layer: the cells of ops.h over the tokens, from a state of 0 or the cached state. W
// is the width of the state, G the number of gates.
struct Recurrence {
  static constexpr const char* kName = "recurrence";
  static constexpr bool kAttends = false;
  Cell cell = Cell::lstm;
  int64_t width = 0, layer = 0;
  Linear input;   // [G W, C]
  Linear hidden;  // [G W, W]
  Linear output;  // [C, W]; empty if W = C

  Recurrence() = default;
  Recurrence(const StackSpec& stack, int64_t model_width, int64_t layer, const Dropout& = {});
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec&, double, double) { return 0; }

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const Pass& pass, const Tensor& residual = {}) const;
  static bool reads_bf16() { return false; }

  // The steps of operator(), for inspection: the states h, given gates = input(x); the recurrent
  // part of the gates, given the previous state h; and the output.
  Tensor states(const Tensor& gates, const Pass& pass) const;       // [B, T, G W] -> [B, T, W]
  Tensor recurrent_part(const Tensor& h, DType compute) const;      // [R, W] -> [R, G W]
  Tensor projected(const Tensor& h, const Pass& pass = {}) const {  // [..., W] -> [..., C]
    return output.weight.present() ? output(h, pass) : h;
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    input.each(f, name + ".input");
    hidden.each(f, name + ".hidden");
    output.each(f, name + ".output");
  }

 private:
  struct Text {
    int64_t row, tokens;  // the index of its first row, and the number of its rows
  };
  Tensor step_by_step(const Tensor& gates, const std::vector<Text>& texts, KvCache* cache) const;
  Tensor from_zero(const Tensor& gates) const;
  Tensor from_cache(const Tensor& gates, KvCache& cache) const;
};

}  // namespace fovea::model
