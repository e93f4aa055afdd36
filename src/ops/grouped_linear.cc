#include <cstring>

#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

In at(const Tensor& x, int64_t row) {
  const size_t bytes = static_cast<size_t>(row * x.dim(1)) * size_of(x.dtype());
  return {x.data_as<char>() + bytes, x.dtype()};
}

Out place(Out all, int64_t element) {
  if (all.data != nullptr)
    all.data = static_cast<char*>(all.data) + static_cast<size_t>(element) * size_of(all.dtype);
  return all;
}

}  // namespace

Tensor grouped_linear(const Tensor& x, const std::vector<int64_t>& counts,
                      const std::vector<Tensor>& weights, const std::vector<Tensor>& biases) {
  const int64_t C = x.dim(1), N = weights[0].dim(0);
  int64_t total = 0;
  for (const int64_t count : counts) total += count;
  check(x.rank() == 2 && total == x.dim(0) && counts.size() == weights.size() &&
            (biases.empty() || biases.size() == weights.size()) && weights[0].dim(1) == C,
        "grouped_linear: x {}, {} groups of {} rows, {} weights {}; expected them to fit", x.shape(),
        counts.size(), total, weights.size(), weights[0].shape());
  const Tensor y = empty({total, N}, x.dtype());
  int64_t row = 0;
  for (size_t e = 0; e < counts.size(); row += counts[e++]) {
    if (counts[e] == 0) continue;
    const In bias = biases.empty() ? In{nullptr, DType::f32} : In(biases[e]);
    kernels(x).gemm(place(y, row * N), at(x, row), weights[e], bias,
                    {counts[e], N, C, false, true});
  }
  std::vector<Tensor> inputs = {x};
  inputs.insert(inputs.end(), weights.begin(), weights.end());
  inputs.insert(inputs.end(), biases.begin(), biases.end());
  return record(y, inputs, [=](const Tensor& dy, Gradients& d) {
    // of each group: dx = dy W,  dW = dy^T x,  db = the sum of dy's rows
    const Out dx = d[x];
    int64_t begin = 0;
    for (size_t e = 0; e < counts.size(); begin += counts[e++]) {
      const int64_t rows = counts[e];
      if (rows == 0) continue;
      const Kernels& k = kernels(dy);
      if (dx.data != nullptr)
        k.gemm(place(dx, begin * C), at(dy, begin), weights[e], {}, {rows, C, N, false, false});
      if (d.wants(weights[e]))
        k.gemm(d[weights[e]], at(dy, begin), at(x, begin), {}, {N, C, rows, true, false});
      if (!biases.empty() && d.wants(biases[e]))
        k.sum_rows(d[biases[e]], at(dy, begin), {rows, N});
    }
  });
}

}  // namespace fovea
