// The roundings of BitNet b1.58.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/threads.h"
#include "kernels/sum_block.h"
#include "ops/common.h"
#include "ops/ternary.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

constexpr float kLeastScale = 1e-5f;

// Returns round(x * scale) within the bounds, divided by `scale`.
template <class Number>
Number rounded(Number x, Number scale, Number least, Number most) {
  return std::clamp(std::nearbyint(x * scale), least, most) / scale;
}

template <class Number>
Tensor rows_rounded(const Tensor& x) {
  const HostValues<Number> values(x);
  const int64_t width = x.dim(-1), rows = width > 0 ? x.size() / width : 0;
  std::vector<Number> y(static_cast<size_t>(x.size()));
  const int64_t grain = kSumBlock / (width + 1) + 1;
  parallel_for(rows, grain, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      Number most = 0;
      for (const Number v : values.row(r)) most = std::max(most, std::abs(v));
      const Number scale = 127 / std::max(most, Number{kLeastScale});
      for (int64_t i = r * width; i < (r + 1) * width; ++i)
        y[static_cast<size_t>(i)] = rounded<Number>(values[i], scale, -128, 127);
    }
  });
  return tensor_from<Number>(x.shape(), [&](int64_t i) { return y[static_cast<size_t>(i)]; });
}

// The mean is computed in double, in blocks that do not depend on the number of threads.
template <class Number>
Tensor matrix_rounded(const Tensor& x) {
  const HostValues<Number> values(x);
  const int64_t size = x.size(), blocks = (size + kSumBlock - 1) / kSumBlock;
  std::vector<double> sums(static_cast<size_t>(blocks));
  parallel_tasks(blocks, [&](int64_t b) {
    for (int64_t i = b * kSumBlock; i < std::min(size, (b + 1) * kSumBlock); ++i)
      sums[static_cast<size_t>(b)] += std::abs(double{values[i]});
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  const auto mean = static_cast<Number>(sum / static_cast<double>(std::max<int64_t>(1, size)));
  const Number scale = 1 / std::max(mean, Number{kLeastScale});
  return tensor_from<Number>(x.shape(),
                             [&](int64_t i) { return rounded<Number>(values[i], scale, -1, 1); });
}

// Applies the function of f32 or f64 to x; the result has x's dtype and device.
template <class Single, class Double>
Tensor with_its_gradient(const Tensor& x, const Single& single, const Double& twice) {
  const Tensor exact = x.dtype() == DType::f64 ? twice(x.detach())
                       : x.dtype() == DType::f32
                           ? single(x.detach())
                           : convert(single(convert(x, DType::f32)), x.dtype());
  return record(exact.to(x.device()), {x},
                [x = Saved::slot(x)](const Tensor& dy, Gradients& d) { d.pass(x, dy); });
}

}  // namespace

Tensor round_rows(const Tensor& x) {
  return with_its_gradient(x, rows_rounded<float>, rows_rounded<double>);
}

Tensor round_ternary(const Tensor& matrix) {
  return with_its_gradient(matrix, matrix_rounded<float>, matrix_rounded<double>);
}

}  // namespace fovea
