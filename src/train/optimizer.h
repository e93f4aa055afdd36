#pragma once

#include <map>
#include <string>
#include <vector>

#include "fovea/train.h"
#include "model/transformer.h"

namespace fovea {

// AdamW (Loshchilov and Hutter 2019) over all parameters of a model. Matrices and token embeddings
// decay, the rest not.
class Optimizer {
 public:
  Optimizer(Transformer& model, const TrainOptions& options);

  // The Euclidean norm of all gradients together; in double, by a fixed order. NaN or infinity if
  // one of them is.
  double gradient_norm() const;

  // One update with the gradients that are there, and forgets them. `step` counts from 1.
  void update(int64_t step, double rate, double norm);
  void forget_gradients();

  // Weights, first and second moments, by name: what a snapshot holds and restores.
  std::map<std::string, Tensor> state() const;

 private:
  struct Moments {
    std::string name;
    Parameter* parameter;
    Tensor m, v;
  };
  std::vector<Moments> all_;
  double beta1_, beta2_, epsilon_, decay_, clip_;
};

// The learning rate of step `step` (from 0): warm-up from 0, then as options.schedule says.
double learning_rate(const TrainOptions& options, int64_t step);

}  // namespace fovea
