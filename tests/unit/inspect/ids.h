#pragma once

#include <algorithm>

#include "tensor/tensor.h"

namespace fovea::study {

// Returns one sequence of tokens, [1, T].
inline Tensor row(const std::vector<int32_t>& ids) {
  Tensor x = empty({1, static_cast<int64_t>(ids.size())}, DType::i32);
  std::copy(ids.begin(), ids.end(), x.data_as<int32_t>());
  return x;
}

}  // namespace fovea::study
