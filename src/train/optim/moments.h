#pragma once

#include <string>
#include <vector>

#include "fovea/train/optimizer.h"
#include "nn/parameter.h"

namespace fovea::train {

// How an optimiser remembers earlier gradients.
struct MomentOptions {
  OptimizerChoice optimizer = {};
  bool packed = false;  // AdamW: 8 bits per moment (PackedMoments in kernels.h) instead of fp32
};

// A tensor that an optimiser keeps for a parameter. It is 0 before the first step.
struct Moment {
  const char* name;  // in snapshots, followed by the name of the parameter
  Shape shape;
  DType dtype = DType::f32;
};

// Returns the rule by which an optimiser updates a parameter: AdamW's, if Muon is chosen and the
// parameter is no matrix of a layer.
OptimizerKind rule_for(const std::string& name, const model::Parameter& parameter,
                       OptimizerKind chosen);

// Returns what the optimiser keeps for a parameter.
std::vector<Moment> moments_of(const std::string& name, const model::Parameter& parameter,
                               const MomentOptions& options);
uint64_t moment_bytes(const std::string& name, const model::Parameter& parameter,
                      const MomentOptions& options);

}  // namespace fovea::train
