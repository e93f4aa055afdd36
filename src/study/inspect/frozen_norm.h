#pragma once

#include <vector>

#include "nn/norm.h"

namespace fovea::study {

// A norm as an affine map, whose scale is the one it has for a row x:
// y = factor * (p - mean(p), if centred) + bias. For p = x, it is the norm itself.
struct FrozenNorm {
  FrozenNorm(const model::Norm& norm, const std::vector<float>& x);

  std::vector<double> of(std::vector<double> p) const;        // without the bias
  std::vector<double> backward(std::vector<double> g) const;  // the transposed map

  std::vector<double> factor, bias;  // [C]; an empty bias is 0
  bool centred = false;
};

}  // namespace fovea::study
