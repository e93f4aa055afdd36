#include "base/error.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, Pairing pairing) {
  check(x.rank() == 4, "rotate: x is {}; expected [B, T, H, D]", x.shape());
  const int64_t tokens = x.dim(1), rows = x.dim(0) * tokens;
  check(cosines.rank() == 2 && cosines.shape() == sines.shape() && cosines.dtype() == DType::f32 &&
            sines.dtype() == DType::f32,
        "rotate: cosines are {} {}, sines {} {}; expected fp32 [T, R/2] twice",
        name_of(cosines.dtype()), cosines.shape(), name_of(sines.dtype()), sines.shape());
  const int64_t angle_rows = cosines.dim(0), rotated = 2 * cosines.dim(1);
  check((angle_rows == tokens || angle_rows == rows) && rotated <= x.dim(3),
        "rotate: angles are {}, x is {}; expected [T or B*T, at most D/2]", cosines.shape(),
        x.shape());
  Rotation rotation{rows, angle_rows, x.dim(2), x.dim(3), rotated, pairing, false};
  Tensor y = empty_like(x);
  kernels(x).rotate(y, x, cosines, sines, rotation);
  if (!recording()) return y;
  rotation.inverse = true;
  return record(y, {x}, [=, x = Saved::slot(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).rotate(d[x], dy, cosines, sines, rotation);  // rotated back
  });
}

}  // namespace fovea
