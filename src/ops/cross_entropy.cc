#include "base/error.h"
#include "kernels/sum_tree.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "ops/units.h"
#include "tensor/tape.h"

namespace fovea {

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, double divisor, float smoothing) {
  const Rows r = rows_of(logits);
  check(targets.dtype() == DType::i32 && targets.size() == r.count,
        "cross_entropy: targets are {} {}, logits {}; expected one int32 per row",
        name_of(targets.dtype()), targets.shape(), logits.shape());
  check(smoothing >= 0 && smoothing <= 1, "cross_entropy: smoothing {}; expected 0 to 1",
        smoothing);
  const Tensor host = targets.to(cpu_device()), there = targets.to(logits.device());
  const int32_t* target = host.data_as<int32_t>();
  int64_t counted = 0;
  for (int64_t i = 0; i < r.count; ++i) {
    check(target[i] < r.width, "cross_entropy: target {} at position {}; expected less than {}",
          target[i], i, r.width);
    counted += target[i] >= 0;
  }
  if (divisor == 0) divisor = static_cast<double>(std::max<int64_t>(1, counted));

  Tensor losses = statistics(logits, r), lse = statistics(logits, r);
  const Kernels& k = kernels(logits);
  k.cross_entropy(losses, lse, logits, there, smoothing, r);
  const Units units = row_units().of(r.count);
  std::vector<double> sums;
  for (int64_t unit = 0; unit < units.count; ++unit) {
    const int64_t begin = units.start(unit, r.count), end = units.start(unit + 1, r.count);
    sums.push_back(k.sum(losses.rows(begin, end), end - begin) / divisor);
  }
  Tensor loss = full({1}, tree_sum(sums), DType::f64);  // on the host

  return record(loss, {logits}, [=, divisor = divisor](const Tensor& dy, Gradients& d) {
    // dlogits = (softmax(logits) - (1 - smoothing) onehot(target) - smoothing / V) / divisor * dy
    kernels(logits).cross_entropy_backward(d[logits], logits, lse, there, {},
                                           static_cast<float>(number_of(dy) / divisor), smoothing,
                                           r);
  });
}

}  // namespace fovea
