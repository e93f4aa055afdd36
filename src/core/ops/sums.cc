// Sums over elements, and what is divided by them.

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "tensor/host_values.h"
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

// Each sum is computed in double on the host, from its first element to its last, so it has the
// same bits wherever its elements are. The sums stay there: a device need not compute in double.
Tensor segment_sums(const Tensor& x, const std::vector<int64_t>& counts) {
  const int64_t N = std::ssize(counts);
  check(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == x.size() && N > 0,
        "segment_sums: x is {}, the counts sum to {}; expected the number of its elements",
        x.shape(), std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const HostValues<double> numbers(convert(x.to(cpu_device()).detach(), DType::f64));
  auto next = numbers.begin();
  const Tensor sums = tensor_from<double>({N}, [&](int64_t n) {
    const auto begin = std::exchange(next, next + counts[static_cast<size_t>(n)]);
    return std::accumulate(begin, next, 0.0);
  });
  return record(
      sums, {x},
      [=, x = Saved::slot(x), size = x.size(), dtype = x.dtype(), device = &x.device()](
          const Tensor& dy, Gradients& d) {
        const HostValues<double> of_sums(dy);
        std::vector<double> each;
        each.reserve(static_cast<size_t>(size));
        for (int64_t n = 0; n < N; ++n)
          each.insert(each.end(), static_cast<size_t>(counts[static_cast<size_t>(n)]), of_sums[n]);
        const Tensor dx =
            tensor_from<double>({size}, [&](int64_t i) { return each[static_cast<size_t>(i)]; });
        const Tensor there = convert(dx, dtype).to(*device);
        kernels(there).convert(d[x], there, size);
      });
}

}  // namespace fovea
