#include "ops/ops.h"
#include "ops/row_loss.h"
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

}  // namespace fovea
