#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "safetensors/safetensors.h"

namespace fovea {

// Returns the norm of the difference between the updates of two runs, relative to the update. The
// weights of the second run are the tensors "RUN.NAME" of `expected`.
inline double update_difference(const std::map<std::string, Tensor>& start,
                                const std::map<std::string, Tensor>& found,
                                const SafeTensors& expected, const std::string& run) {
  double apart = 0, moved = 0;
  for (const auto& [name, weight] : found) {
    const Tensor want = expected.tensor(run + "." + name);
    EXPECT_EQ(weight.shape(), want.shape()) << name;
    const float* const before = start.at(name).data_as<float>();
    for (int64_t i = 0; i < want.size(); ++i) {
      const double target = want.data_as<float>()[i];
      apart += std::pow(weight.data_as<float>()[i] - target, 2);
      moved += std::pow(target - before[i], 2);
    }
  }
  return std::sqrt(apart / moved);
}

inline std::map<std::string, Tensor> copied(const std::map<std::string, Tensor>& tensors) {
  std::map<std::string, Tensor> all;
  for (const auto& [name, tensor] : tensors) all[name] = copy(tensor);
  return all;
}

}  // namespace fovea
