#pragma once

#include "fovea/nn/layers.h"
#include "nn/pass.h"

namespace fovea::nn {

// The pass of the layers inside for a public one, which outlives it. Throws InvalidArgument if the
// type of the products is not possible.
class InnerPass {
 public:
  explicit InnerPass(const Pass& given);
  InnerPass(const InnerPass&) = delete;
  InnerPass& operator=(const InnerPass&) = delete;
  fovea::model::Pass& operator*() { return pass_; }

 private:
  bool hooks(const std::string& name) const;

  const Pass& given_;
  model::Probe probe_;
  fovea::model::Pass pass_;
};

}  // namespace fovea::nn
