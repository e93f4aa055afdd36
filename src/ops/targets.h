#pragma once

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/sum_tree.h"
#include "ops/units.h"
#include "tensor/tensor.h"

namespace fovea {

// Checks the targets of `rows` rows of logits [rows, classes]. Returns the divisor of the sum of
// losses: `divisor`, or the number of targets that are not ignored if it is 0.
inline double checked_divisor(const char* op, const Tensor& targets, const Rows& logits,
                              double divisor, float smoothing) {
  check(targets.dtype() == DType::i32 && targets.size() == logits.count,
        "{}: targets are {} {}, logits {}; expected one int32 per row", op,
        name_of(targets.dtype()), targets.shape(), Shape{logits.count, logits.width});
  check(smoothing >= 0 && smoothing <= 1, "{}: smoothing {}; expected 0 to 1", op, smoothing);
  const Tensor host = targets.to(cpu_device());
  const int32_t* target = host.data_as<int32_t>();
  int64_t counted = 0;
  for (int64_t i = 0; i < logits.count; ++i) {
    check(target[i] < logits.width, "{}: target {} at position {}; expected less than {}", op,
          target[i], i, logits.width);
    counted += target[i] >= 0;
  }
  return divisor != 0 ? divisor : static_cast<double>(std::max<int64_t>(1, counted));
}

// Returns the sum of the losses of all rows, divided by `divisor`: f64 [1], on the host. The rows
// of each unit are summed first, then the units by their tree.
inline Tensor sum_of_losses(const Tensor& losses, double divisor) {
  const int64_t rows = losses.size();
  const Units units = row_units().of(rows);
  std::vector<double> sums;
  for (int64_t unit = 0; unit < units.count; ++unit) {
    const int64_t begin = units.start(unit, rows), end = units.start(unit + 1, rows);
    sums.push_back(kernels(losses).sum(losses.rows(begin, end), end - begin) / divisor);
  }
  return full({1}, tree_sum(sums), DType::f64);
}

}  // namespace fovea
