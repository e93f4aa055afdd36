#include "base/error.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

struct Sizes {
  int64_t B, H, T, S, G, D;

  int64_t weights(int64_t b, int64_t h) const { return (b * H + h) * T * S; }
  // The columns of one head of x [rows, heads D] <-> [rows, D].
  static ColumnCopy out_of(int64_t rows, int64_t heads, int64_t head, int64_t D) {
    return {rows, D, heads * D, head * D, D, 0};
  }
  static ColumnCopy into(int64_t rows, int64_t heads, int64_t head, int64_t D) {
    return {rows, D, D, 0, heads * D, head * D};
  }
};

}  // namespace

Tensor weighted_values(const Tensor& given, const Tensor& v) {
  check(given.rank() == 4 && v.rank() == 4 && given.dim(0) == v.dim(0) &&
            given.dim(3) == v.dim(1) && v.dim(2) > 0 && given.dim(1) % v.dim(2) == 0,
        "weighted_values: weights are {}, v is {}; expected [B, H, T, S] and [B, S, G, D] with H a "
        "multiple of G",
        given.shape(), v.shape());
  const Tensor weights = cast(given, v.dtype());
  const Sizes n{v.dim(0), given.dim(1), given.dim(2), v.dim(1), v.dim(2), v.dim(3)};
  const Tensor y = empty({n.B, n.T, n.H, n.D}, v.dtype());
  const auto values_of = [n, v](int64_t b, int64_t h) {  // [S, D]
    const Tensor head = empty({n.S, n.D}, v.dtype());
    kernels(v).copy_columns(head, at(In(v), b * n.S * n.G * n.D),
                            Sizes::out_of(n.S, n.G, h / (n.H / n.G), n.D));
    return head;
  };
  const Tensor product = empty({n.T, n.D}, v.dtype());
  for (int64_t b = 0; b < n.B; ++b) {
    for (int64_t h = 0; h < n.H; ++h) {
      kernels(v).gemm(product, at(In(weights), n.weights(b, h)), values_of(b, h), {},
                      {n.T, n.D, n.S});
      kernels(v).copy_columns(at(Out(y), b * n.T * n.H * n.D), product,
                              Sizes::into(n.T, n.H, h, n.D));
    }
  }
  return record(y, {weights, v}, [=](const Tensor& dy, Gradients& d) {
    // dP = dy v^T and dv = P^T dy for each head; heads of a group share dv.
    const Kernels& k = kernels(dy);
    const Out dweights = d[weights], dv = d[v];
    const Tensor dvalues = zeros(v.shape(), v.dtype());
    const Tensor dhead = empty({n.T, n.D}, dy.dtype()), part = empty({n.S, n.D}, v.dtype());
    for (int64_t b = 0; b < n.B; ++b) {
      for (int64_t h = 0; h < n.H; ++h) {
        k.copy_columns(dhead, at(In(dy), b * n.T * n.H * n.D), Sizes::out_of(n.T, n.H, h, n.D));
        if (d.wants(weights))
          k.gemm(at(dweights, n.weights(b, h)), dhead, values_of(b, h), {},
                 {n.T, n.S, n.D, false, true});
        k.gemm(part, at(In(weights), n.weights(b, h)), dhead, {}, {n.S, n.D, n.T, true, false});
        Out sum = at(Out(dvalues), b * n.S * n.G * n.D);
        sum.add = true;
        k.copy_columns(sum, part, Sizes::into(n.S, n.G, h / (n.H / n.G), n.D));
      }
    }
    if (d.wants(v)) k.copy_columns(dv, dvalues, {n.B * n.S, n.G * n.D, n.G * n.D, 0, n.G * n.D, 0});
  });
}

}  // namespace fovea
