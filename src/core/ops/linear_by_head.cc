#include "base/error.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {

Tensor linear_by_head(const Tensor& x, int64_t begin, const Tensor& weight, bool transpose) {
  check(!recording(), "linear_by_head: has no gradient; expected NoGradient");
  check(x.rank() >= 2 && weight.rank() == 2 && begin >= 0 && begin < x.dim(-1) &&
            weight.dim(0) % x.dim(-2) == 0,
        "linear_by_head: x is {} from column {}, weight is {}; expected [..., H, D] and [H N, K]",
        x.shape(), begin, weight.shape());
  const int64_t H = x.dim(-2), D = x.dim(-1), R = x.size() / (H * D);
  const int64_t N = weight.dim(0) / H, K = weight.dim(1);
  const int64_t in = transpose ? N : K, out = transpose ? K : N;
  check(D - begin == in, "linear_by_head: {} elements of each head; expected {}", D - begin, in);
  Shape shape = x.shape();
  shape.back() = out;
  const Tensor y = empty(shape, x.dtype(), x.device());
  const Kernels& k = kernels(x);
  const Tensor head = empty({R, in}, x.dtype(), x.device());
  const Tensor product = empty({R, out}, x.dtype(), x.device());
  for (int64_t h = 0; h < H; ++h) {
    k.copy_columns(head, x, {R, in, H * D, h * D + begin, in, 0});
    k.gemm(product, head, at(In(weight), h * N * K), {}, {R, out, in, false, !transpose});
    k.copy_columns(y, product, {R, out, out, 0, H * out, h * out});
  }
  return y;
}

}  // namespace fovea
