#include "ops/groups.h"
#include "ops/in_dtype.h"
#include "ops/offset.h"
#include "ops/ops.h"
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

}  // namespace

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  check_groups(x, counts, weights, biases, [](const Tensor& weight) { return weight.shape(); });
  const int64_t outputs = weights[0].dim(0), width = x.dim(1);
  const std::vector<Group> groups = groups_of(counts);
  Tensor y = empty({x.dim(0), outputs}, x.dtype(), x.device());
  for (const auto& [e, begin, count] : groups) {
    kernels(x).gemm(at(Out(y), begin * outputs), at(In(x), begin * width),
                    in_dtype(weights[e], x.dtype()), biases.empty() ? In{} : In(biases[e]),
                    {count, outputs, width, false, true});
  }
  std::vector<Tensor> inputs{x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());

  return record(y, inputs, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    // For each group: dx = dy weight,   dweight = dy^T x,   dbias = sum over rows of dy
    const Kernels& k = kernels(dy);
    const Tensor elements = x.elements();
    const Out dx = d[x];
    for (const auto& [e, begin, count] : groups) {
      const In part = at(In(dy), begin * outputs);
      if (!biases.empty() && d.wants(biases[e])) k.sum_rows(d[biases[e]], part, {count, outputs});
      if (d.wants(weights[e])) {
        k.gemm(d[weights[e]], part, at(In(elements), begin * width), {},
               {outputs, width, count, true, false});
      }
      if (dx.data != nullptr) {
        k.gemm(at(dx, begin * width), part, in_dtype(weights[e], dy.dtype()), {},
               {count, width, outputs, false, false});
      }
    }
  });
}

}  // namespace fovea
