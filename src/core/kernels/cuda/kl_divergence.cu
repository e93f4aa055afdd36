// The divergence from a teacher's probabilities: a warp for each row.

#include "base/exp.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/rows.cuh"
//
#include "kernels/cpu/exp-inl.h"

namespace fovea::cuda {
namespace {

using cpu::one_number::exp_of;
using cpu::one_number::larger;
using math::parts::natural_exp;
using math::parts::natural_log;

// The ascending classes of a row that have probabilities of their own.
struct TopOfRow {
  const int32_t* classes;
  int64_t count;

  // The index of a class; -1 for others.
  DEVICE int64_t find(int64_t number) const {
    int64_t begin = 0, end = count;
    while (begin < end) {
      const int64_t middle = (begin + end) / 2;
      if (classes[middle] < number)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < count && classes[begin] == number ? begin : -1;
  }
};

// p (log p - log q), which is 0 for p = 0
DEVICE double divergence_term(double p_log, double q_log) {
  return p_log == -INFINITY ? 0 : natural_exp(p_log) * (p_log - q_log);
}

}  // namespace

KERNEL(kl_divergence)
(Out losses, Out lse, Out rest, In logits, const int32_t* top, In log_p, TopClasses classes,
 int64_t count, int64_t width) {
  const int64_t k = classes.count;
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const TopOfRow t{top + i * k, k};
    const auto z = [&](int64_t j) { return get(logits, i * width + j) * classes.scale; };
    const auto other = [&](int64_t j) { return t.find(j) >= 0 ? -INFINITY : z(j); };
    const bool ignored = t.classes[0] < 0;
    double others = -INFINITY;  // the log of the sum of exp(z) over the other classes
    if (!ignored && k < width) {
      float most = -INFINITY;  // ignores NaN, which the sum propagates
      for (int64_t j = lane(); j < width; j += kWarp) most = larger(other(j), most);
      most = largest_over<kWarp>(most);
      const double sum = blockwise_sum(width, [&](int64_t j) { return exp_of(other(j) - most); });
      others = most + natural_log(sum);
    }
    if (lane() != 0) continue;
    double loss = 0, log_sum = 0;
    if (!ignored) {
      double most = others, sum = 0;
      for (int64_t j = 0; j < k; ++j) {
        const double own = z(t.classes[j]);
        most = most < own ? own : most;
      }
      for (int64_t j = 0; j < k; ++j) sum += natural_exp(z(t.classes[j]) - most);
      if (others != -INFINITY) sum += natural_exp(others - most);
      log_sum = most + natural_log(sum);
      loss = divergence_term(get(log_p, i * (k + 1) + k), others - log_sum);
      for (int64_t j = 0; j < k; ++j)
        loss += divergence_term(get(log_p, i * (k + 1) + j), z(t.classes[j]) - log_sum);
    }
    put(losses, i, static_cast<float>(loss));
    put(lse, i, static_cast<float>(log_sum));
    put(rest, i, ignored ? 0 : static_cast<float>(others));
  }
}

KERNEL(kl_divergence_backward)
(Out dlogits, In logits, In lse, In rest, const int32_t* top, In log_p, TopClasses classes,
 float factor, int64_t count, int64_t width, Classes columns) {
  const int64_t k = classes.count;
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const TopOfRow t{top + i * k, k};
    const bool ignored = t.classes[0] < 0;
    const float log_sum = get(lse, i), others = get(rest, i);
    const auto p = [&](int64_t j) { return natural_exp(get(log_p, i * (k + 1) + j)); };
    const double q_rest = natural_exp(double{others} - log_sum);
    // Without other classes, no element has this factor.
    const float shift = others == -INFINITY ? 0 : others;
    const float of_others = factor * static_cast<float>(q_rest - p(k));
    for (int64_t j = lane(); j < width; j += kWarp) {
      const float z = get(logits, i * width + j) * classes.scale;
      const int64_t own = t.find(columns.first + j);
      float gradient = 0;
      if (!ignored && own >= 0)
        gradient = factor * static_cast<float>(natural_exp(double{z} - log_sum) - p(own));
      else if (!ignored)
        gradient = exp_of(z - shift) * of_others;
      put(dlogits, i * width + j, gradient);
    }
  }
}

}  // namespace fovea::cuda
