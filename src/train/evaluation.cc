#include "train/evaluation.h"

#include <algorithm>
#include <numbers>

#include "tensor/tape.h"

namespace fovea {

Score score(const Transformer& model, DType compute, int64_t count,
            const std::function<Batch(int64_t n)>& batch) {
  const NoGradient off;
  Pass pass;
  pass.compute = compute;
  Score total;
  for (int64_t n = 0; n < count; ++n) {
    const Batch next = batch(n);
    total.loss += *loss_of(model, next, pass, 1).data_as<float>();
    total.asked += next.asked;
  }
  total.loss /= static_cast<double>(std::max<int64_t>(1, total.asked));
  return total;
}

Score score(const Transformer& model, DType compute, const Examples& examples) {
  return score(model, compute, examples.validation_batches(),
               [&](int64_t n) { return examples.validation(n); });
}

double bits_per_byte(double loss, int64_t tokens, int64_t bytes) {
  return bytes > 0
             ? loss * static_cast<double>(tokens) / static_cast<double>(bytes) / std::numbers::ln2
             : 0;
}

}  // namespace fovea
