#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

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
