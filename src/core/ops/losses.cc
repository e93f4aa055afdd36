// Losses of logits.

#include "base/error.h"
#include "ops/common.h"
#include "ops/ops.h"
#include "ops/row_loss.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea {

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const LossOptions& options) {
  const Rows r = rows_of(logits);
  const RowLoss loss("cross_entropy", logits, targets, r, options);
  loss.forward(logits, 0, r.count);

  return record(loss.total(), {logits}, [=](const Tensor& dy, Gradients& d) {
    loss.backward(d[logits], logits, number_of(dy), 0, r.count);
  });
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor, float smoothing) {
  return cross_entropy(logits, targets, {.divisor = divisor, .smoothing = smoothing});
}

Tensor kl_divergence(const Tensor& logits, const TopProbabilities& p, double divisor,
                     float temperature) {
  const Rows r = rows_of(logits);
  const RowLoss loss("kl_divergence", logits, p, r, divisor, temperature);
  loss.forward(logits, 0, r.count);

  return record(loss.total(), {logits}, [=](const Tensor& dy, Gradients& d) {
    loss.backward(d[logits], logits, number_of(dy), 0, r.count);
  });
}

Tensor log_probability(const Tensor& logits, const Tensor& targets) {
  const Rows r = rows_of(logits);
  check(targets.dtype() == DType::i32 && targets.size() == r.count,
        "log_probability: targets are {} {}, logits {}; expected one int32 per row",
        name_of(targets.dtype()), targets.shape(), logits.shape());
  const Tensor there = targets.to(logits.device());
  const HostValues<int32_t> target(targets);
  for (int64_t i = 0; i < r.count; ++i)
    check(target[i] < r.width, "log_probability: target {} at position {}; expected less than {}",
          target[i], i, r.width);
  const Tensor losses = statistics(logits, r), lse = statistics(logits, r);
  kernels(logits).cross_entropy(losses, lse, logits, there, 0, r);
  Tensor y = empty(targets.shape(), losses.dtype(), losses.device());
  kernels(losses).scale(y, losses, -1, r.count);

  return record(y, {logits}, [=](const Tensor& dy, Gradients& d) {
    // dlogits[r] = (onehot(targets[r]) - softmax(logits[r])) * dy[r]
    kernels(logits).cross_entropy_backward(d[logits], logits, lse, there, dy, -1, 0, r, {});
  });
}

}  // namespace fovea
