#pragma once

#include <map>
#include <string>
#include <vector>

#include "optim/rules.h"

namespace fovea::train {

// Updates the trainable parameters among those given, each by its rule.
class Optimizer {
 public:
  // The parameters must outlive the optimizer. Requests the gradients of the trainable parameters.
  Optimizer(const std::vector<model::NamedParameter>& parameters, const OptimizerOptions& options);
  // Adds a parameter, trained as `kind` says; `parameter` must outlive the optimizer.
  void add(const std::string& name, nn::Parameter& parameter, const model::Parameter& kind);

  // Returns the sums of the squares of the elements of each trainable parameter's gradient, one for
  // each block of kSumBlock elements; none for a parameter without a gradient.
  std::vector<std::vector<double>> block_squares() const;
  // Returns the Euclidean norm of all gradients together, summed in double in a fixed order. The
  // norm is not finite if an element of a gradient is not finite.
  double gradient_norm() const;

  // Updates the parameters with the current gradients, which are then cleared. `step` counts from
  // 1; `rate` is the learning rate and `norm` the result of gradient_norm().
  void update(int64_t step, double rate, double norm);
  void clear_gradients();

  // Returns the weights and the moments of the trainable parameters, as "weight.NAME", and "m.NAME"
  // and others of moments_of(): the tensors of a snapshot.
  std::map<std::string, Tensor> state() const;

 private:
  std::vector<Trained> all_;
  OptimizerOptions options_;
  uint32_t count_ = 0;  // of all parameters
};

}  // namespace fovea::train
