#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cc"
#include <hwy/foreach_target.h>

#include <limits>

#include "base/math.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Calls visit(logits, begin, count) for each block of row i: a row over the vocabulary is too long
// to widen at once.
template <class Visit>
HWY_INLINE void each_block(In logits, int64_t i, int64_t width, const Visit& visit) {
  FloatBlock scratch;
  for (int64_t begin = 0; begin < width; begin += kBlock) {
    const int64_t count = std::min(kBlock, width - begin);
    visit(widened(logits, i * width + begin, count, scratch.values), begin, count);
  }
}

// Returns the largest number of a row. Ignores NaN, since the following sum propagates it.
HWY_INLINE float row_maximum(In logits, int64_t i, int64_t width) {
  Vector most[kParts];
  std::fill_n(most, kParts, all(-std::numeric_limits<float>::infinity()));
  each_block(logits, i, width, [&](const float* x, int64_t, int64_t count) HWY_ATTR {
    each_vector(count, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
      most[part] = access.keep(larger(access.load(x + j), most[part]), most[part]);
    });
  });
  for (int64_t part = 1; part < kParts; ++part) most[0] = larger(most[0], most[part]);
  return hn::GetLane(hn::MaxOfLanes(Floats(), most[0]));
}

// Returns the mean of a row; adds the sums of blocks in double, as log_sum_exp() does.
double row_mean(In logits, int64_t i, int64_t width) {
  double sum = 0;
  each_block(logits, i, width, [&](const float* x, int64_t, int64_t count) HWY_ATTR {
    Sum block;
    each_vector(count, [&](int64_t j, int64_t part, auto access)
                           HWY_ATTR { block.add(access.load(x + j), part, access); });
    sum += block.total();
  });
  return sum / static_cast<double>(width);
}

// Returns log(sum(exp(row))); adds the sums of blocks in double, since a row has many blocks.
double log_sum_exp(In logits, int64_t i, int64_t width) {
  const float most = row_maximum(logits, i, width);
  double sum = 0;
  each_block(logits, i, width, [&](const float* x, int64_t, int64_t count) HWY_ATTR {
    Sum block;
    each_vector(count, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
      block.add(exp_of(hn::Sub(access.load(x + j), all(most))), part, access);
    });
    sum += block.total();
  });
  return most + math::log(sum);
}

void losses_of_rows(Out losses, Out lse, In logits, const int32_t* targets, float smoothing,
                    Rows rows) {
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const double log_sum = log_sum_exp(logits, i, rows.width);
      float loss = 0, scratch = 0, kept = static_cast<float>(log_sum);
      if (targets[i] >= 0) {
        const double target = *widened(logits, i * rows.width + targets[i], 1, &scratch);
        double value = log_sum - target;
        if (smoothing > 0) value += smoothing * (target - row_mean(logits, i, rows.width));
        loss = static_cast<float>(value);
      }
      narrow_into(losses, i, 1, &loss);
      narrow_into(lse, i, 1, &kept);
    }
  });
}

void gradients_of_rows(Out dlogits, In logits, In lse, const int32_t* targets, In factors,
                       float factor, float smoothing, Rows rows, Classes classes) {
  const int64_t all_classes = classes.of(rows.width);
  const float others = smoothing / static_cast<float>(all_classes);
  const float own =
      static_cast<float>(1.0 - smoothing + smoothing / static_cast<double>(all_classes));
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    FloatBlock output;
    for (int64_t i = first; i < last; ++i) {
      const bool ignored = targets[i] < 0;
      float scratch = 0;
      const float log_sum = *widened(lse, i, 1, &scratch);
      const float row_factor =
          factors.data != nullptr ? factor * *widened(factors, i, 1, &scratch) : factor;
      each_block(logits, i, rows.width, [&](const float* x, int64_t begin, int64_t count) HWY_ATTR {
        float* room = room_for(dlogits, i * rows.width + begin, output.values);
        const auto gradient = [&](Vector v) HWY_ATTR {
          return hn::Mul(hn::Sub(exp_of(hn::Sub(v, all(log_sum))), all(others)), all(row_factor));
        };
        const int64_t target = targets[i] - classes.first - begin;
        const float target_logit = target >= 0 && target < count ? x[target] : 0;
        if (ignored)
          std::fill_n(room, count, 0.0f);
        else
          map(room, count, gradient, x);
        if (target >= 0 && target < count) {
          // (p - own) * factor, computed from p: p * factor - own * factor would round more often.
          const float p = hn::GetLane(exp_of(all(target_logit - log_sum)));
          room[target] = (p - own) * row_factor;
        }
        narrow_into(dlogits, i * rows.width + begin, count, room);
      });
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(losses_of_rows);
HWY_EXPORT(gradients_of_rows);

void cross_entropy(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows) {
  check_stored_types(losses, lse, logits);
  HWY_DYNAMIC_DISPATCH(losses_of_rows)(losses, lse, logits, targets, smoothing, rows);
}

void cross_entropy_backward(Out dlogits, In logits, In lse, Indices targets, In factors,
                            float factor, float smoothing, Rows rows, Classes classes) {
  check_stored_types(dlogits, logits, lse, factors);
  HWY_DYNAMIC_DISPATCH(gradients_of_rows)
  (dlogits, logits, lse, targets, factors, factor, smoothing, rows, classes);
}

}  // namespace fovea::cpu
#endif
