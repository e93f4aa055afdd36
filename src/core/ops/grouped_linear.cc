#include <algorithm>

#include "base/error.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "ops/weights.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

struct Group {
  size_t expert;
  int64_t begin, count;  // rows
};

// Returns the groups that have rows.
std::vector<Group> groups_of(const std::vector<int64_t>& counts) {
  std::vector<Group> groups;
  int64_t begin = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] > 0) groups.push_back({e, begin, counts[e]});
    begin += counts[e];
  }
  return groups;
}

template <class Weight>
void check_groups(const Tensor& x, const std::vector<int64_t>& counts,
                  const std::vector<Weight>& weights, const std::vector<Tensor>& biases) {
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

// `weights` are Tensors or PackedWeights, which get no gradient.
template <class Weight>
Tensor grouped_with(const Tensor& x, const std::vector<int64_t>& counts,
                    const std::vector<Weight>& weights, const std::vector<Tensor>& biases) {
  const int64_t outputs = shape_of(weights[0])[0], width = x.dim(1);
  const std::vector<Group> groups = groups_of(counts);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  for (const auto& [e, begin, count] : groups) {
    multiply(kernels(x), at(Out(y), begin * outputs), at(In(x), begin * width), weights[e],
             biases.empty() ? In{} : In(biases[e]), {count, outputs, width, false, true});
  }
  std::vector<Tensor> inputs{x};
  if constexpr (kIsDense<Weight>) inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  bool trains_weights = false;  // else the elements of x are not needed
  if constexpr (kIsDense<Weight>)
    trains_weights = std::any_of(weights.begin(), weights.end(),
                                 [](const Tensor& weight) { return weight.wants_gradient(); });
  return record(
      y, inputs,
      [=, x = trains_weights ? Saved(x) : Saved::slot(x)](const Tensor& dy, Gradients& d) {
        // For each group: dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
        const Kernels& k = kernels(dy);
        const Tensor elements = trains_weights ? x.elements() : Tensor();
        const Out dx = d[x];
        for (const auto& [e, begin, count] : groups) {
          const In part = at(In(dy), begin * outputs);
          if (!biases.empty() && d.wants(biases[e]))
            k.sum_rows(d[biases[e]], part, {count, outputs});
          if constexpr (kIsDense<Weight>) {
            if (d.wants(weights[e])) {
              k.gemm(d[weights[e]], part, at(In(elements), begin * width), {},
                     {outputs, width, count, true, false});
            }
          }
          if (dx.data != nullptr) {
            multiply(k, at(dx, begin * width), part, weights[e], {},
                     {count, width, outputs, false, false});
          }
        }
      });
}

}  // namespace

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases);
  return grouped_with(x, counts, weights, biases);
}

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<PackedWeight>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases);
  if (weights[0].multiplies_exactly()) return grouped_with(x, counts, weights, biases);
  const int64_t outputs = weights[0].matrix().outputs, width = x.dim(1);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  for (const auto& [e, begin, count] : groups_of(counts)) {
    const Tensor bias = biases.empty() ? Tensor() : biases[e];
    if (!weights[e].packed_for_use()) {
      multiply_late(y.rows(begin, begin + count), x.rows(begin, begin + count), {weights[e], bias});
      continue;
    }
    const PackedProduct product{at(Out(y), begin * outputs), bias, weights[e].packed()};
    kernels(x).packed_linear({&product, 1}, at(In(x), begin * width), count);
  }
  return y;
}

}  // namespace fovea
