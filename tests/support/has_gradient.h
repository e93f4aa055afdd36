#pragma once

#include "nn/parameter.h"

namespace fovea::test {

// Whether ops compute the gradient of a parameter of this role.
inline bool has_gradient(model::Role role) {
  return role != model::Role::linear_slope && role != model::Role::least_argument;
}

}  // namespace fovea::test
