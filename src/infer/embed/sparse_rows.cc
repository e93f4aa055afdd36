// Sparse vectors with gradients, for training.

#include <cmath>

#include "base/error.h"
#include "embed/head_states.h"
#include "embed/sparse_model.h"
#include "ops/largest_products.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

// Returns what the matrix of a language model's head multiplies.   x [R, C] -> [R, C']
Tensor inputs_of_matrix(const model::Head& head, const Tensor& hidden) {
  Tensor x = hidden;
  if (head.transform.weight.present())
    x = head.norm(activation(head.transform(x), head.spec.activation), x.dtype());
  return head.spec.scaled ? scale(x, 1 / std::sqrt(static_cast<float>(x.dim(-1)))) : x;
}

// Returns the matrix as f32, of which a packed one is constant.
Tensor matrix_floats(const model::Parameter& matrix) {
  return matrix.packed ? matrix.packed.floats().to(matrix.device())
                       : cast(matrix.value, DType::f32);
}

}  // namespace

// The bias and the softcap keep the order of the logits of different tokens, so they follow the
// maximum. So does log(1 + relu(x)).
Tensor dense_rows(const model::Transformer& transformer, const SpladePooling& pooling,
                  const TokenBatch& batch, int64_t recompute) {
  check(!pooling.sum, "pooling: sum; expected max");
  const Tensor states =
      head_states(transformer, batch, std::nullopt, DType::f32, nullptr, recompute);  // [B, T, C]
  const int64_t T = states.dim(1), C = states.dim(2), V = transformer.spec.vocabulary;
  std::vector<int32_t> tokens;  // rows of `states`
  std::vector<int64_t> counts;
  for (size_t b = 0; b < batch.valid.size(); ++b) {
    const Interval valid = batch.valid[b];
    counts.push_back(valid.end - valid.begin);
    for (int64_t t = valid.begin; t < valid.end; ++t)
      tokens.push_back(static_cast<int32_t>(static_cast<int64_t>(b) * T + t));
  }
  const model::Head& head = transformer.head;
  const Tensor x =
      inputs_of_matrix(head, gather(vector_tensor(tokens), states.view({states.dim(0) * T, C})));
  const Tensor weight =
      matrix_floats(head.spec.tied ? transformer.token_embedding : head.output.weight);
  Tensor y = largest_products(weight, x, counts);  // [B, V]
  if (head.output.bias.value)
    y = scale_columns(y, full({V}, 1, y.dtype(), y.device()), head.output.bias.value);
  if (head.spec.softcap > 0) y = softcap(y, head.spec.softcap);
  y = log(shift(activation(y, Activation::relu), 1));
  return pooling.twice ? log(shift(y, 1)) : y;
}

}  // namespace fovea::infer
