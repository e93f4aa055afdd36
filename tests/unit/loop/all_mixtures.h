#pragma once

#include <string>
#include <vector>

#include "fovea/model/spec.h"

namespace fovea::test {

struct Mixture {
  std::string name;
  model::Spec spec;  // validated
};

// Returns Specs that vary each field that affects the results, alone and combined. Their models are
// small enough for central differences.
std::vector<Mixture> all_mixtures();

constexpr int64_t kMixtureTokens = 9;

}  // namespace fovea::test
