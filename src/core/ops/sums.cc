// Sums over elements, and what is divided by them.

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

// Multiplies x by ones, so the order of additions is that of a matrix product.
Tensor sum(const Tensor& x) {
  check(x.size() > 0, "sum: x is {}; expected at least one element", x.shape());
  const int64_t n = x.size();
  return linear(x.view({1, n}), full({1, n}, 1, x.dtype(), x.device()), {}, working_type(x))
      .view({1});
}

Tensor mean(const Tensor& x) { return scale(sum(x), 1 / static_cast<float>(x.size())); }

Tensor softmax(const Tensor& x) {
  const Rows r = rows_of(x);
  Tensor y = empty(x.shape(), working_type(x), x.device());
  kernels(x).softmax(y, x, r);
  return record(y, {x}, [r, x = Saved::slot(x), y = y.detach()](const Tensor& dy, Gradients& d) {
    kernels(dy).softmax_backward(d[x], dy, y, r);  // dx = y * (dy - sum(dy * y))
  });
}

Tensor divide_by_sum(const Tensor& x) {
  Tensor y = empty_like(x);
  kernels(x).divide_by_sum(y, x, rows_of(x));
  return record(y, {x}, [x = Saved(x)](const Tensor& dy, Gradients& d) {
    // with the sum s of a row:  dx = (dy - (dy . x) / s) / s
    kernels(dy).divide_by_sum_backward(d[x], dy, x.elements(), rows_of(dy));
  });
}

// Each sum is computed in double, from its first element to its last, so it has the same bits
// wherever its elements are.
Tensor segment_sums(const Tensor& x, const std::vector<int64_t>& counts) {
  const int64_t N = std::ssize(counts);
  check(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == x.size() && N > 0,
        "segment_sums: x is {}, the counts sum to {}; expected the number of its elements",
        x.shape(), std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const Tensor numbers = convert(x.to(cpu_device()).detach(), DType::f64);
  const Tensor sums = empty({N}, DType::f64);
  const double* next = numbers.data_as<double>();
  for (int64_t n = 0; n < N; ++n) {
    const double* const end = next + counts[static_cast<size_t>(n)];
    sums.data_as<double>()[n] = std::accumulate(next, end, 0.0);
    next = end;
  }
  const Tensor y = sums.to(x.device());
  return record(y, {x}, [=, x = Saved::slot(x), size = x.size()](const Tensor& dy, Gradients& d) {
    const Tensor each = empty({size}, DType::f64), of_sums = dy.to(cpu_device());
    double* to = each.data_as<double>();
    for (int64_t n = 0; n < N; ++n)
      to = std::fill_n(to, counts[static_cast<size_t>(n)], of_sums.data_as<double>()[n]);
    const Tensor dx = each.to(dy.device());
    kernels(dx).convert(d[x], dx, size);
  });
}

}  // namespace fovea
