#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/threads.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "ops/statistics.h"

namespace fovea {

Tensor inverse_row_lengths(const Tensor& x) {
  check(x.rank() == 2, "inverse_row_lengths: x is {}; expected [R, C]", x.shape());
  const int64_t width = x.dim(1);
  const Tensor y = empty({x.dim(0)}, working_type(x));
  parallel_tasks(x.dim(0), [&](int64_t r) {
    const double sum = kernels(x).sum_of_squares(at(In(x), r * width), width);
    const double inverse = sum > 0 ? 1 / std::sqrt(sum) : 0;
    if (y.dtype() == DType::f64)
      y.data_as<double>()[r] = inverse;
    else
      y.data_as<float>()[r] =
          static_cast<float>(std::min<double>(inverse, std::numeric_limits<float>::max()));
  });
  return y.to(x.device());
}

}  // namespace fovea
