#include "losses/skip_gram_loss.h"

#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {

Tensor skip_gram_loss(const Tensor& u, const Tensor& v, const Tensor& tokens, const Tensor& others,
                      double divisor) {
  const int64_t N = others.dim(0), K = others.dim(1), C = u.dim(1);
  const Tensor rows =  // each token K times
      tensor_from<int32_t>({N, K}, [&](int64_t i) { return i / K; });
  const Tensor signs = tensor_from<float>({N, K}, [&](int64_t i) { return i % K == 0 ? 1 : -1; });
  const Tensor a = gather(rows, embedding(tokens, u)), b = embedding(others, v);  // [N, K, C]
  const Tensor products = linear(multiply(a, b), full({1, C}, 1, u.dtype(), u.device()));
  const Tensor z = multiply(products.view({N, K}), cast(signs, u.dtype()).to(u.device()));
  const Tensor sum = segment_sums(log_sigmoid(z), {N * K});
  return multiply(sum, full({1}, -1 / divisor, DType::f64, sum.device()));
}

}  // namespace fovea::train
