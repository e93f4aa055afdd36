#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/targets.h"
#include "tensor/tape.h"

namespace fovea {

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double given_divisor,
                     float smoothing) {
  const Rows r = rows_of(logits);
  const double divisor = checked_divisor("cross_entropy", targets, r, given_divisor, smoothing);
  const Tensor there = targets.to(logits.device());
  const Tensor losses = statistics(logits, r), lse = statistics(logits, r);
  kernels(logits).cross_entropy(losses, lse, logits, there, smoothing, r);
  const Tensor loss = sum_of_losses(losses, divisor);

  return record(loss, {logits}, [=](const Tensor& dy, Gradients& d) {
    // dlogits = (softmax(logits) - (1 - smoothing) onehot(target) - smoothing / V) / divisor * dy
    kernels(logits).cross_entropy_backward(d[logits], logits, lse, there, {},
                                           static_cast<float>(number_of(dy) / divisor), smoothing,
                                           r, {});
  });
}

}  // namespace fovea
