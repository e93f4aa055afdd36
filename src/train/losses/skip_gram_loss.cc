#include "losses/skip_gram_loss.h"

#include "ops/ops.h"

namespace fovea::train {

Tensor skip_gram_loss(const Tensor& u, const Tensor& v, const Tensor& tokens, const Tensor& others,
                      double divisor) {
  const int64_t N = others.dim(0), K = others.dim(1), C = u.dim(1);
  const Tensor rows = empty({N, K}, DType::i32);  // each token K times
  std::vector<float> signs;
  for (int64_t i = 0; i < N * K; ++i) {
    rows.data_as<int32_t>()[i] = static_cast<int32_t>(i / K);
    signs.push_back(i % K == 0 ? 1.0f : -1.0f);
  }
  const Tensor a = gather(rows, embedding(tokens, u)), b = embedding(others, v);  // [N, K, C]
  const Tensor products = linear(multiply(a, b), full({1, C}, 1, u.dtype(), u.device()));
  const Tensor z =
      multiply(products.view({N, K}), tensor_of(signs, {N, K}, u.dtype()).to(u.device()));
  const Tensor sum = segment_sums(log_sigmoid(z), {N * K});
  return multiply(sum, full({1}, -1 / divisor, DType::f64, sum.device()));
}

}  // namespace fovea::train
