#include "nn/connector.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "tensor/host_values.h"

namespace fovea::model {

Tensor Connector::operator()(const Tensor& hidden) const {
  const int64_t B = hidden.dim(0), L = hidden.dim(1), C = hidden.dim(2), n = square;
  const int64_t patches = L - skipped;
  std::vector<int64_t> order(static_cast<size_t>(patches));  // of the patches of an image
  std::iota(order.begin(), order.end(), 0);
  if (n > 1) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
    auto next = order.begin();
    for (int64_t y = 0; y < side; y += n)
      for (int64_t x = 0; x < side; x += n)
        for (int64_t i = 0; i < n * n; ++i) *next++ = (y + i / n) * side + x + i % n;
  }
  const Tensor rows = tensor_from<int32_t>({B * patches}, [&](int64_t i) {
    const int64_t patch = order[static_cast<size_t>(i % patches)];
    return static_cast<int32_t>(i / patches * L + skipped + patch);
  });
  const Tensor ordered = gather(rows.to(hidden.device()), hidden.view({B * L, C}));
  Tensor y = first(cast(ordered, DType::f32).view({B * tokens(patches), n * n * C}));
  if (second.weight.present()) y = second(fovea::activation(y, activation));
  return y;
}

}  // namespace fovea::model
