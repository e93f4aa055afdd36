#include "embed/losses.h"

#include "base/error.h"
#include "embed/pooling.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::infer {

Tensor ranking_loss(const Tensor& anchors, const Tensor& candidates, float temperature) {
  check(anchors.rank() == 2 && candidates.rank() == 2 && anchors.dim(1) == candidates.dim(1) &&
            anchors.dim(0) <= candidates.dim(0),
        "ranking_loss: anchors are {}, candidates {}; expected [B, C] and [B or more, C]",
        anchors.shape(), candidates.shape());
  check(temperature > 0, "ranking_loss: temperature {}; expected more than 0", temperature);
  const Tensor logits = scale(linear(anchors, candidates), 1 / temperature);  // [B, B or more]
  return cross_entropy(logits, tensor_from<int32_t>({anchors.dim(0)}, [](int64_t i) { return i; }));
}

Tensor cosine_loss(const Tensor& a, const Tensor& b, const std::vector<float>& scores) {
  const int64_t B = a.dim(0), C = a.dim(1);
  check(a.shape() == b.shape() && static_cast<int64_t>(scores.size()) == B,
        "cosine_loss: {} and {} with {} scores; expected two tensors [B, C] and B scores",
        a.shape(), b.shape(), scores.size());
  const Tensor cosines = linear(multiply(a, b), full({1, C}, 1, a.dtype(), a.device()));  // [B, 1]
  const Tensor errors = subtract(cosines, tensor_of(scores, {B, 1}, a.dtype()).to(a.device()));
  return mean(multiply(errors, errors));
}

Tensor first_columns(const Tensor& x, int64_t count) {
  check(count >= 1 && count <= x.dim(1), "dimensions: {}; expected 1 to {}, the width", count,
        x.dim(1));
  if (count == x.dim(1)) return x;
  return pick(x, tensor_from<int32_t>({x.dim(0), count}, [=](int64_t i) { return i % count; }));
}

Tensor first_dimensions(const Tensor& x, int64_t count) {
  return unit_length(first_columns(x, count));
}

Tensor inner_product(const Tensor& a, const Tensor& b) { return sum(multiply(a, b)); }

}  // namespace fovea::infer
