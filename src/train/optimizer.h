#pragma once

#include <map>
#include <string>
#include <vector>

#include "nn/parameter.h"

namespace fovea {

struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double weight_decay = 0.1;    // for matrices and token embeddings; no other parameter decays
  double clip = 1.0;            // maximum norm of all gradients together; 0 = unlimited
  bool packed_moments = false;  // 8 bits per moment (PackedMoments in kernels.h) instead of fp32
  uint64_t seed = 0;            // of the rounding of packed moments
  double up_rate = 1;           // factor of the learning rate of the matrices B of adapters
};

// AdamW (Loshchilov and Hutter 2019) for the trainable parameters among those given.
class Optimizer {
 public:
  // The parameters must outlive the optimizer. Requests the gradients of the trainable parameters.
  Optimizer(const std::vector<NamedParameter>& parameters, const OptimizerOptions& options);

  // Returns the Euclidean norm of all gradients together, summed in double in a fixed order. The
  // norm is not finite if an element of a gradient is not finite.
  double gradient_norm() const;

  // Updates the parameters with the current gradients, which are then cleared. `step` counts from
  // 1; `rate` is the learning rate and `norm` the result of gradient_norm().
  void update(int64_t step, double rate, double norm);
  void clear_gradients();

  // Returns the weights and the first and second moments of the trainable parameters, as
  // "weight.NAME", "m.NAME" and "v.NAME": the tensors of a snapshot. Packed moments also have
  // "largest_m.NAME" and "largest_v.NAME".
  std::map<std::string, Tensor> state() const;

 private:
  struct Moments {
    std::string name;
    Parameter* parameter;
    uint32_t index;  // among all parameters
    Tensor m, v;
    Tensor largest_m, largest_v;  // of packed moments; else empty
  };
  std::vector<Moments> all_;
  OptimizerOptions options_;
};

}  // namespace fovea
