#pragma once

#include <string>
#include <vector>

#include "fovea/train/optimizer.h"
#include "nn/parameter.h"
#include "optim/moments.h"

namespace fovea::train {

// A parameter that is trained, with the moments that its rule keeps, in the order of moments_of().
struct Trained {
  std::string name;
  nn::Parameter* parameter;
  model::Role role;
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

}  // namespace fovea::train
