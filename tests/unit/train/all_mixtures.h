#pragma once

#include <string>
#include <vector>

#include "fovea/spec.h"

namespace fovea::test {

struct Mixture {
  std::string name;
  Spec spec;  // validated
};

// Models of every shape, and each field that changes what is computed, alone and beside others;
// small enough for central differences.
std::vector<Mixture> all_mixtures();

constexpr int64_t kMixtureTokens = 9;

}  // namespace fovea::test
