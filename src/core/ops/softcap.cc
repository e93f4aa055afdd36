#include <cmath>

#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor softcap(const Tensor& x, float cap) {
  check(cap > 0 && std::isfinite(cap), "softcap: cap {}; expected a positive number", cap);
  Tensor y = empty_like(x);
  kernels(x).softcap(y, x, cap, x.size());
  return record(y, {x}, [cap, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).softcap_backward(d[x], dy, x.elements(), cap, dy.size());
  });
}

}  // namespace fovea
