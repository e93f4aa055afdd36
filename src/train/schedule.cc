#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/math.h"

namespace fovea {

double learning_rate(const RateSchedule& s, int64_t step) {
  if (step < s.warmup)
    return s.peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup + 1);
  const double last = s.peak * s.final_rate;
  const double done = static_cast<double>(step - s.warmup) /
                      static_cast<double>(std::max<int64_t>(1, s.steps - s.warmup));
  switch (s.kind) {
    case Schedule::constant: return s.peak;
    case Schedule::inverse_root:
      return s.peak * std::sqrt(static_cast<double>(s.warmup + 1) / static_cast<double>(step + 1));
    case Schedule::cosine:  // Loshchilov and Hutter 2017, eq. 5
      return last + 0.5 * (s.peak - last) * (1 + math::cos(std::numbers::pi * std::min(1.0, done)));
    case Schedule::trapezoid: {  // Zhai et al. 2022, section 3.5: flat, then linear to the end
      const double start = static_cast<double>(s.steps) * (1 - s.decay_fraction);
      if (static_cast<double>(step) < start) return s.peak;
      const double fall =
          (static_cast<double>(step) - start) / std::max(1.0, static_cast<double>(s.steps) - start);
      return last + (s.peak - last) * (1 - std::min(1.0, fall));
    }
  }
  return last;
}

}  // namespace fovea
