#include "losses/contrastive_loss.h"

#include "base/error.h"
#include "embed/pooling.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

// Repeats a number.   x [1] -> [count]
Tensor repeated(const Tensor& x, int64_t count) {
  const Tensor rows = zeros({count}, DType::i32).to(x.device());
  return gather(rows, x.view({1, 1})).view({count});
}

}  // namespace

Tensor contrastive_loss(const Tensor& images, const Tensor& texts, const Tensor& scale,
                        const Tensor& bias) {
  const int64_t B = images.dim(0), C = images.dim(1);
  check(texts.shape() == images.shape(),
        "contrastive_loss: images are {}, texts {}; expected equal shapes [B, C]",
        describe(images.shape()), describe(texts.shape()));
  const Tensor x = scale_columns(infer::unit_length(images), repeated(exp(scale), C));
  const Tensor y = infer::unit_length(texts);
  if (bias) {
    const Tensor logits = linear(x, y, repeated(bias, B));  // [B, B]
    std::vector<float> signs(static_cast<size_t>(B * B), -1);
    for (int64_t i = 0; i < B; ++i) signs[static_cast<size_t>(i * B + i)] = 1;
    const Tensor z = tensor_of(signs, {B, B}, logits.dtype()).to(logits.device());
    const Tensor all = sum(log_sigmoid(multiply(logits, z)));
    return cast(fovea::scale(all, -1 / static_cast<float>(B)), DType::f64);
  }
  const Tensor own = tensor_from<int32_t>({B}, [](int64_t i) { return i; });
  return fovea::scale(add(cross_entropy(linear(x, y), own), cross_entropy(linear(y, x), own)),
                      0.5f);
}

}  // namespace fovea::train
