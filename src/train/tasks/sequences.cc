#include "tasks/sequences.h"

namespace fovea::train {

Tensor Sequences::rows(const std::vector<int64_t>& of, int64_t width, int32_t padding) const {
  const Tensor filled = empty({std::ssize(of), width}, DType::i32);
  int32_t* row = filled.data_as<int32_t>();
  for (const int64_t i : of) {
    std::fill(std::copy_n((*this)[i], length(i), row), row + width, padding);
    row += width;
  }
  return filled;
}

}  // namespace fovea::train
