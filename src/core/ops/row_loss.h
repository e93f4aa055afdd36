#pragma once

#include <optional>

#include "ops/ops.h"
#include "tensor/tensor.h"

namespace fovea {

// The loss of R rows of logits [R, V], whose rows and columns may be processed in parts: forward()
// of all rows, then total(), then backward(). Copies share the results of forward().
class RowLoss {
 public:
  // The cross-entropy, and the divergence of options.distillation. `of`: x or logits, on whose
  // device and in whose working type the statistics are. Errors name `op`.
  RowLoss(const char* op, const Tensor& of, const Tensor& targets, Rows logits,
          const LossOptions& options);
  // The divergence alone.
  RowLoss(const char* op, const Tensor& of, const TopProbabilities& p, Rows logits, double divisor,
          float temperature);

  // Computes the losses of rows [begin, end), given their logits.
  void forward(const Tensor& logits, int64_t begin, int64_t end) const;
  Tensor total() const;  // f64 [1]
  // dlogits (+)= dy times the gradient of total(), for rows [begin, end) and these columns.
  void backward(Out dlogits, const Tensor& logits, double dy, int64_t begin, int64_t end,
                Classes columns = {}) const;
  // Whether backward() adds two gradients, so that rounding dlogits would round their sum twice.
  bool sums_gradients() const { return divergence_.has_value(); }

 private:
  struct Divergence {
    TopProbabilities p;
    TopClasses classes;
    Tensor losses, lse, rest;  // [R]
    double share, temperature;
  };
  // Returns the number of rows that are not ignored.
  int64_t set_divergence(const char* op, const Tensor& of, const TopProbabilities& p, Rows logits,
                         double share, double temperature);

  int64_t width_;
  double divisor_, hard_share_ = 1;
  Tensor targets_, losses_, lse_;  // [R]; empty without a cross-entropy
  float smoothing_ = 0;
  std::optional<Divergence> divergence_;
};

}  // namespace fovea
