#pragma once

#include <string>
#include <vector>

#include "nn/parameter.h"
#include "transformer/moments.h"

namespace fovea {

struct OptimizerOptions {
  double beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8;
  double weight_decay = 0.1;    // for matrices and token embeddings; no other parameter decays
  double clip = 1.0;            // maximum norm of all gradients together; 0 = unlimited
  bool packed_moments = false;  // AdamW: see MomentOptions
  uint64_t seed = 0;            // of the rounding of packed moments
  double up_rate = 1;           // factor of the learning rate of the matrices B of adapters
  DType products = DType::f32;  // Muon: of the factors of its products, f32 or bf16
  OptimizerChoice choice = {};
};

// A parameter that is trained, with the moments that its rule keeps, in the order of moments_of().
struct Trained {
  std::string name;
  Parameter* parameter;
  uint32_t index;  // among all parameters
  OptimizerKind rule;
  std::vector<Moment> moments;
  std::vector<Tensor> values;  // of the moments
};

// A step of one parameter.
struct RuleStep {
  int64_t number = 1;  // counts from 1
  double rate = 0;     // learning rate
  double decay = 0;    // weight decay
  float gradient_scale = 1;
};

// Each rule updates the moments and then the weights, which its formula calls w; g is
// gradient_scale
// * gradient, and t the number of the step. They run on several threads, for different parameters.
using Rule = void(const Trained& trained, const Tensor& gradient, const RuleStep& step,
                  const OptimizerOptions& options);
Rule adamw_rule, sgd_rule, lion_rule, adafactor_rule, muon_rule;

}  // namespace fovea
