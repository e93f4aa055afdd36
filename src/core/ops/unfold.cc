#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor unfold(const Tensor& x, int64_t kernel, int64_t stride, int64_t padding) {
  // A limit above any practical value; sums of values below it do not overflow.
  constexpr int64_t kMost = int64_t{1} << 40;
  check(x.rank() == 3 && kernel > 0 && stride > 0 && padding >= 0 && kernel < kMost &&
            stride < kMost && padding < kMost && x.dim(1) + 2 * padding >= kernel,
        "unfold: x is {}, kernel {}, stride {}, padding {}; expected [B, T, C] and a kernel of at "
        "most T + 2 * padding",
        x.shape(), kernel, stride, padding);
  Windows w{x.dim(0), x.dim(1), x.dim(2), kernel, stride, padding, 0};
  w.count = (w.tokens + 2 * padding - kernel) / stride + 1;
  Tensor y = empty({w.batch, w.count, w.width * kernel}, x.dtype(), x.device());
  kernels(x).unfold(y, x, w);
  return record(y, {x}, [w, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).unfold_backward(d[x], dy, w);  // dx[t] = the sum over the windows that contain t
  });
}

}  // namespace fovea
