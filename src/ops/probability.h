#pragma once

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea {

inline void check_probability(const Dropout& dropout, const char* op) {
  check(dropout.probability >= 0 && dropout.probability < 1,
        "{}: dropout {}; expected a probability below 1", op, dropout.probability);
}

}  // namespace fovea
