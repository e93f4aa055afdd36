#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "fovea/nn/parameter.h"
#include "fovea/train/optimizer.h"

namespace fovea::nn {

// Updates parameters by the gradients that backward() has left.
class Optimizer {
 public:
  // Requests the gradients of the trainable parameters, which it shares. Muon updates the matrices
  // of stacks, whose names begin with "encoder." or "decoder."; AdamW updates the others.
  Optimizer(std::span<const NamedParameter> parameters,
            const train::OptimizerOptions& options = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  // Takes a step with the learning rate `rate`, and clears the gradients. Returns the norm of all
  // gradients together before clipping. If it is not finite, no parameter changes.
  double step(double rate);
  // The number of steps taken, and the state that a later process needs to go on: the weights and
  // the moments by their names.
  int64_t steps() const;
  std::map<std::string, Tensor> state() const;
  // Continues from a state after `steps` steps. Throws InvalidArgument, with the name, if a tensor
  // is missing or has another shape.
  void restore(const std::map<std::string, Tensor>& state, int64_t steps);

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace fovea::nn
