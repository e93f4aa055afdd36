#include "train/evaluation.h"

#include <algorithm>
#include <numbers>

#include "tensor/tape.h"

namespace fovea {

double mean_loss(const Transformer& model, DType compute, int64_t windows, int64_t context,
                 int64_t batch, const FillWindows& fill) {
  const NoGradient off;
  Pass pass;
  pass.compute = compute;
  double sum = 0;
  for (int64_t first = 0; first < windows; first += batch) {
    const int64_t count = std::min(batch, windows - first);
    const Tensor ids = empty({count, context}, DType::i32),
                 targets = empty({count, context}, DType::i32);
    fill(first, count, ids.data_as<int32_t>(), targets.data_as<int32_t>());
    sum += *cross_entropy(model.logits(model.hidden(ids, pass)), targets, 1).data_as<float>();
  }
  return sum / static_cast<double>(windows * context);
}

double bits_per_byte(double loss, int64_t tokens, int64_t bytes) {
  return bytes > 0
             ? loss * static_cast<double>(tokens) / static_cast<double>(bytes) / std::numbers::ln2
             : 0;
}

}  // namespace fovea
