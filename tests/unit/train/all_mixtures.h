#pragma once

#include <string>
#include <vector>

#include "fovea/spec.h"

namespace fovea::test {

struct Mixture {
  std::string name;
  Spec spec;  // validated
};

// Returns models that vary each field that affects the results, alone and combined, and are small
// enough for central differences.
std::vector<Mixture> all_mixtures();

constexpr int64_t kMixtureTokens = 9;

}  // namespace fovea::test
