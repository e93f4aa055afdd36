#pragma once

#include "base/error.h"
#include "tensor/tensor.h"

namespace fovea {

// Checks the arguments of grouped_linear(); shape_of(weight) is a weight's shape, [N, C].
template <class Weight, class ShapeOf>
void check_groups(const Tensor& x, const std::vector<int64_t>& counts,
                  const std::vector<Weight>& weights, const std::vector<Tensor>& biases,
                  const ShapeOf& shape_of) {
  check(!weights.empty() && counts.size() == weights.size() &&
            (biases.empty() || biases.size() == weights.size()),
        "grouped_linear: {} counts, {} weights, {} biases; expected equal numbers", counts.size(),
        weights.size(), biases.size());
  int64_t rows = 0;
  for (const int64_t count : counts) {
    check(count >= 0, "grouped_linear: a group of {} rows; expected at least 0", count);
    rows += count;
  }
  const Shape shape = shape_of(weights[0]);
  check(x.rank() == 2 && x.dim(0) == rows && shape.size() == 2 && shape[1] == x.dim(1),
        "grouped_linear: x is {}, {} rows are in groups, weights are {}; expected [rows, C] and "
        "[N, C]",
        x.shape(), rows, shape);
  for (const Weight& weight : weights) {
    check(shape_of(weight) == shape, "grouped_linear: weights are {} and {}; expected equal shapes",
          shape, shape_of(weight));
  }
  for (const Tensor& bias : biases) {
    check(bias.shape() == Shape{shape[0]},
          "grouped_linear: a bias is {}, weights are {}; expected [N] and [N, C]", bias.shape(),
          shape);
  }
}

}  // namespace fovea
