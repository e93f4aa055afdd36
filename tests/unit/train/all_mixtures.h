#pragma once

#include <string>
#include <vector>

#include "fovea/spec.h"

namespace fovea::test {

struct Mixture {
  std::string name;
  Spec spec;  // validated
};

// Models of every shape, with each field that affects the results, alone and combined; small enough
// for central differences.
std::vector<Mixture> all_mixtures();

constexpr int64_t kMixtureTokens = 9;

}  // namespace fovea::test
