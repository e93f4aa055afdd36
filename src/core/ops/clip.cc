#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor clip(const Tensor& x, float least, float most) {
  check(least <= most, "clip: {} to {}; expected ascending limits", least, most);
  const int64_t size = x.size();
  Tensor y = empty_like(x);
  kernels(x).clip(y, x, least, most, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).clip_backward(d[x], dy, x.elements(), least, most, size);
  });
}

}  // namespace fovea
