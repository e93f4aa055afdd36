#pragma once

#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea {

inline void check_probability(const Dropout& dropout, const char* op) {
  check(dropout.probability >= 0 && dropout.probability < 1,
        "{}: dropout {}; expected at least 0 and below 1", op, dropout.probability);
}

}  // namespace fovea
