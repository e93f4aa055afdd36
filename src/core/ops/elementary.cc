#include "ops/ops.h"
#include "ops/statistics.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Computes in f32 (f64 for f64): differences of logarithms need this precision.
Tensor elementary(const Tensor& x, Elementary kind) {
  const int64_t size = x.size();
  Tensor y = empty(x.shape(), working_type(x), x.device());
  kernels(x).elementary(y, x, kind, size);
  return record(y, {x}, [=, x = Saved(x)](const Tensor& dy, Gradients& d) {
    kernels(dy).elementary_backward(d[x], dy, x.elements(), kind, size);  // dx = dy * f'(x)
  });
}

}  // namespace

Tensor exp(const Tensor& x) { return elementary(x, Elementary::exp); }
Tensor log(const Tensor& x) { return elementary(x, Elementary::log); }
Tensor log_sigmoid(const Tensor& x) { return elementary(x, Elementary::log_sigmoid); }

}  // namespace fovea
