#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/math.h"

namespace fovea::train {

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::cosine: return "cosine";
    case Schedule::trapezoid: return "trapezoid";
    case Schedule::constant: return "constant";
    case Schedule::inverse_root: return "inverse_root";
    case Schedule::linear: return "linear";
  }
  return "";
}

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
    case Schedule::linear: return last + (s.peak - last) * (1 - std::min(1.0, done));
    case Schedule::trapezoid: {  // Zhai et al. 2022, section 3.5: flat, then linear to the end
      const double start = std::max(static_cast<double>(s.warmup),
                                    static_cast<double>(s.steps) * (1 - s.decay_fraction));
      if (static_cast<double>(step) < start) return s.peak;
      const double fall =
          (static_cast<double>(step) - start) / std::max(1.0, static_cast<double>(s.steps) - start);
      return last + (s.peak - last) * (1 - std::min(1.0, fall));
    }
  }
  return last;
}

int64_t usual_warmup(int64_t steps) { return std::min<int64_t>(steps / 20, 100); }

void choose_intervals(TrainOptions& o) {
  const auto part = [&](int64_t divisor, int64_t most) {
    return std::clamp<int64_t>(o.steps / divisor, 1, most);
  };
  if (o.warmup < 0) o.warmup = usual_warmup(o.steps);
  if (o.evaluate_every < 0) o.evaluate_every = part(8, 250);
  if (o.sample_every < 0) o.sample_every = part(4, 500);
}

namespace {

// Returns the sum of floor(a k / m) over k = 0 .. n - 1, by Euclid's algorithm.
int64_t sum_of_floors(int64_t n, int64_t m, int64_t a) {
  int64_t sum = 0, b = 0;
  while (true) {
    sum += n * (n - 1) / 2 * (a / m) + n * (b / m);
    a %= m;
    const int64_t most = a * n + b % m;
    if (most < m) return sum;
    n = most / m;
    b = most % m;
    std::swap(a, m);
  }
}

int64_t growing_steps(const TrainOptions& o) {
  return std::llround(o.growth * static_cast<double>(o.steps));
}

}  // namespace

int64_t Growth::at(int64_t step) const {
  if (epoch > 0) return std::min(last, epoch - step % steps_per_epoch() * last);
  return step < steps ? first + (last - first) * step / steps : last;
}

int64_t Growth::sum(int64_t step) const {
  if (epoch > 0)
    return step / steps_per_epoch() * epoch + std::min(step % steps_per_epoch() * last, epoch);
  const int64_t growing = std::min(step, steps);
  const int64_t grown = growing > 0 ? sum_of_floors(growing, steps, last - first) : 0;
  return first * growing + grown + last * (step - growing);
}

Growth passes_of(const TrainOptions& o, double epoch) {
  if (o.accumulate_from > 0) return {o.accumulate_from, o.accumulate, growing_steps(o)};
  Growth passes{o.accumulate, o.accumulate, 0};
  if (o.epochs > 0 && o.accumulate > 1) {
    const bool whole = epoch == std::floor(epoch);
    passes.epoch = static_cast<int64_t>(std::ceil(whole ? epoch : o.epochs * epoch));
  }
  return passes;
}

double mean_passes(const TrainOptions& o, double epoch) {
  const Growth passes = passes_of(o, epoch);
  if (passes.epoch > 0)
    return static_cast<double>(passes.epoch) / static_cast<double>(passes.steps_per_epoch());
  const double missing = static_cast<double>(passes.last - passes.first) / 2;
  return static_cast<double>(passes.last) - (o.accumulate_from > 0 ? o.growth * missing : 0);
}

Growth window_of(const TrainOptions& o, int64_t context) {
  if (o.window_from == 0) return {context, context, 0};
  return {std::min(o.window_from, context), context, growing_steps(o)};
}

}  // namespace fovea::train
