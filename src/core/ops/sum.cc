#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"

namespace fovea {

// Multiplies x by ones, so the order of additions is that of a matrix product.
Tensor sum(const Tensor& x) {
  check(x.size() > 0, "sum: x is {}; expected at least one element", x.shape());
  const int64_t n = x.size();
  return linear(x.view({1, n}), full({1, n}, 1, x.dtype(), x.device()), {}, working_type(x))
      .view({1});
}

Tensor mean(const Tensor& x) { return scale(sum(x), 1 / static_cast<float>(x.size())); }

}  // namespace fovea
