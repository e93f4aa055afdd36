#include "tasks/sequences.h"

#include "losses/token_rows.h"

namespace fovea::train {

Tensor Sequences::rows(const std::vector<int64_t>& of, int64_t width, int32_t padding) const {
  TokenRows rows(std::ssize(of), width, padding);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const int64_t i = of[static_cast<size_t>(r)];
    std::copy_n((*this)[i], length(i), rows.row(r));
  }
  return rows.tensor();
}

Tensor Sequences::shifted_rows(const std::vector<int64_t>& of, int64_t width, int32_t padding,
                               int32_t start) const {
  TokenRows rows(std::ssize(of), width, padding);
  for (int64_t r = 0; r < rows.rows(); ++r) {
    const int64_t i = of[static_cast<size_t>(r)];
    *rows.row(r) = start;
    std::copy_n((*this)[i], length(i) - 1, rows.row(r) + 1);
  }
  return rows.tensor();
}

}  // namespace fovea::train
