#include "nn/connector.h"

#include <cmath>
#include <numeric>

namespace fovea::model {

Tensor Connector::operator()(const Tensor& hidden) const {
  const int64_t patches = hidden.dim(1) - skipped, C = hidden.dim(2), n = square;
  const Tensor rows = empty({patches}, DType::i32);
  int32_t* next = rows.data_as<int32_t>();
  std::iota(next, next + patches, static_cast<int32_t>(skipped));
  if (n > 1) {
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(patches))));
    for (int64_t y = 0; y < side; y += n)
      for (int64_t x = 0; x < side; x += n)
        for (int64_t i = 0; i < n * n; ++i)
          *next++ = static_cast<int32_t>(skipped + (y + i / n) * side + x + i % n);
  }
  const Tensor ordered = gather(rows.to(hidden.device()), hidden.view({hidden.dim(1), C}));
  Tensor y = first(cast(ordered, DType::f32).view({tokens(patches), n * n * C}));
  if (second.weight.present()) y = second(fovea::activation(y, activation));
  return y;
}

}  // namespace fovea::model
