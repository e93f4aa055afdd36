#include "ops/ops.h"
#include "ops/row_loss.h"
#include "tensor/tape.h"

namespace fovea {

Tensor kl_divergence(const Tensor& logits, const TopProbabilities& p, double divisor,
                     float temperature) {
  const Rows r = rows_of(logits);
  const RowLoss loss("kl_divergence", logits, p, r, divisor, temperature);
  loss.forward(logits, 0, r.count);

  return record(loss.total(), {logits}, [=](const Tensor& dy, Gradients& d) {
    loss.backward(d[logits], logits, number_of(dy), 0, r.count);
  });
}

}  // namespace fovea
