#include "base/error.h"
#include "ops/offset.h"
#include "ops/ops.h"
#include "ops/statistics.h"
#include "tensor/tape.h"

namespace fovea {

Tensor log_probability(const Tensor& logits, const Tensor& targets) {
  const Rows r = rows_of(logits);
  check(targets.dtype() == DType::i32 && targets.size() == r.count,
        "log_probability: targets are {} {}, logits {}; expected one int32 a row",
        name_of(targets.dtype()), targets.shape(), logits.shape());
  const int32_t* target = targets.data_as<int32_t>();
  for (int64_t i = 0; i < r.count; ++i)
    check(target[i] < r.width, "log_probability: target {} at place {}; expected less than {}",
          target[i], i, r.width);
  const Tensor losses = statistics(logits, r), lse = statistics(logits, r);
  kernels(logits).cross_entropy(losses, lse, logits, target, 0, r);
  Tensor y = empty(targets.shape(), losses.dtype());
  kernels(losses).scale(y, losses, -1, r.count);

  return record(y, {logits}, [=](const Tensor& dy, Gradients& d) {
    // dlogits[r] = (onehot(targets[r]) - softmax(logits[r])) * dy[r]
    const Out dx = d[logits];
    for (int64_t i = 0; i < r.count; ++i) {
      const float upstream = dy.dtype() == DType::f64 ? static_cast<float>(dy.data_as<double>()[i])
                                                      : dy.data_as<float>()[i];
      kernels(logits).cross_entropy_backward(at(dx, i * r.width), at(In(logits), i * r.width),
                                             at(In(lse), i), targets.data_as<int32_t>() + i,
                                             -upstream, 0, {1, r.width});
    }
  });
}

// The log-probability of the first of two classes with the logits x and 0.
Tensor log_sigmoid(const Tensor& x) {
  const Tensor logits = linear(x.view({x.size(), 1}), from({1, 0}, {2, 1}, x.dtype()));
  return log_probability(logits, zeros(x.shape(), DType::i32));
}

}  // namespace fovea
