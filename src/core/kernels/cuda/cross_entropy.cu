// Cross-entropy: a warp for each row.

#include "base/log.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/rows.cuh"
//
#include "kernels/cpu/exp-inl.h"

namespace fovea::cuda {
namespace {

using cpu::one_number::exp_of;
using cpu::one_number::larger;

}  // namespace

KERNEL(cross_entropy)
(Out losses, Out lse, In logits, const int32_t* targets, float smoothing, int64_t count,
 int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const int64_t begin = i * width;
    float most = -INFINITY;  // ignores NaN, which the sum propagates
    for (int64_t j = lane(); j < width; j += kWarp) most = larger(get(logits, begin + j), most);
    most = largest_over<kWarp>(most);
    const auto logit = [&](int64_t j) { return get(logits, begin + j); };
    const double sum = blockwise_sum(width, [&](int64_t j) { return exp_of(logit(j) - most); });
    const double log_sum = most + math::parts::natural_log(sum);
    double loss = 0;
    if (targets[i] >= 0) {
      const double target = get(logits, begin + targets[i]);
      loss = log_sum - target;
      if (smoothing > 0) {
        const double total = blockwise_sum(width, logit);
        loss += smoothing * (target - total / static_cast<double>(width));
      }
    }
    if (lane() != 0) continue;
    put(losses, i, static_cast<float>(loss));
    if (lse.data != nullptr) put(lse, i, static_cast<float>(log_sum));
  }
}

KERNEL(cross_entropy_backward)
(Out dlogits, In logits, In lse, const int32_t* targets, In factors, float factor, float smoothing,
 int64_t count, int64_t width, Classes classes) {
  const int64_t all_classes = classes.count > 0 ? classes.count : width;
  const float others = smoothing / static_cast<float>(all_classes);
  const auto own =
      static_cast<float>(1.0 - smoothing + smoothing / static_cast<double>(all_classes));
  for (int64_t e = first_element(); e < count * width; e += element_stride()) {
    const int64_t i = e / width, target = targets[i] - classes.first;
    float gradient = 0;
    if (targets[i] >= 0) {
      const float row_factor = factors.data != nullptr ? factor * get(factors, i) : factor;
      const float p = exp_of(get(logits, e) - get(lse, i));
      gradient = (p - (e % width == target ? own : others)) * row_factor;
    }
    put(dlogits, e, gradient);
  }
}

}  // namespace fovea::cuda
