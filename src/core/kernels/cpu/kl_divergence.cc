#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/kl_divergence.cc"
#include <hwy/foreach_target.h>

#include <limits>

#include "base/math.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The classes of one row that have a probability of their own.
struct TopOfRow {
  const int32_t* top;
  int64_t count;
  float scale;
};

// Calls visit(z, begin, count) for each block of a row, where z is scale * logits.
template <class Visit>
HWY_INLINE void each_scaled_block(In logits, int64_t row, int64_t width, float scale,
                                  const Visit& visit) {
  FloatBlock stored, scaled;
  for (int64_t begin = 0; begin < width; begin += kBlock) {
    const int64_t count = std::min(kBlock, width - begin);
    const float* x = widened(logits, row + begin, count, stored.values);
    map(scaled.values, count, [&](Vector v) HWY_ATTR { return hn::Mul(v, all(scale)); }, x);
    visit(scaled.values, begin, count);
  }
}

// Returns the log of the sum of exp(z) over the classes that are not among those of the row.
double log_sum_of_rest(In logits, int64_t row, int64_t width, const TopOfRow& t) {
  if (t.count >= width) return kNone;
  const auto each_block_of_rest = [&](const auto& visit) HWY_ATTR {
    const int32_t* next = t.top;
    each_scaled_block(logits, row, width, t.scale,
                      [&](float* z, int64_t begin, int64_t count) HWY_ATTR {
                        for (; next < t.top + t.count && *next < begin + count; ++next)
                          z[*next - begin] = kNone;
                        visit(z, count);
                      });
  };
  Vector most_of[kParts];
  std::fill_n(most_of, kParts, all(kNone));
  each_block_of_rest([&](const float* z, int64_t count) HWY_ATTR {
    each_vector(count, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
      // Ignores NaN; the following sum propagates it.
      most_of[part] = access.keep(larger(access.load(z + j), most_of[part]), most_of[part]);
    });
  });
  for (int64_t part = 1; part < kParts; ++part) most_of[0] = larger(most_of[0], most_of[part]);
  const float most = hn::GetLane(hn::MaxOfLanes(Floats(), most_of[0]));
  double sum = 0;
  each_block_of_rest([&](const float* z, int64_t count) HWY_ATTR {
    Sum block;
    each_vector(count, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
      block.add(exp_of(hn::Sub(access.load(z + j), all(most))), part, access);
    });
    sum += block.total();
  });
  return most + math::log(sum);
}

HWY_INLINE float scaled_logit(In logits, int64_t index, float scale) {
  float stored = 0;
  return *widened(logits, index, 1, &stored) * scale;
}

HWY_INLINE double log_probability_at(In log_p, int64_t index) {
  float stored = 0;
  return *widened(log_p, index, 1, &stored);
}

void divergences_of_rows(Out losses, Out lse, Out rest, In logits, const int32_t* top, In log_p,
                         const TopClasses& classes, Rows rows) {
  const int64_t k = classes.count;
  const auto term = [](double p_log, double q_log) {
    return p_log == kNone ? 0 : math::exp(p_log) * (p_log - q_log);
  };
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    for (int64_t i = first; i < last; ++i) {
      const TopOfRow t{top + i * k, k, classes.scale};
      float results[3] = {};
      if (t.top[0] >= 0) {
        const int64_t row = i * rows.width;
        const double others = log_sum_of_rest(logits, row, rows.width, t);
        double most = others, sum = 0;
        for (int64_t j = 0; j < k; ++j)
          most = std::max<double>(most, scaled_logit(logits, row + t.top[j], t.scale));
        for (int64_t j = 0; j < k; ++j)
          sum += math::exp(scaled_logit(logits, row + t.top[j], t.scale) - most);
        if (others != kNone) sum += math::exp(others - most);
        const double log_sum = most + math::log(sum);
        double loss = term(log_probability_at(log_p, i * (k + 1) + k), others - log_sum);
        for (int64_t j = 0; j < k; ++j)
          loss += term(log_probability_at(log_p, i * (k + 1) + j),
                       scaled_logit(logits, row + t.top[j], t.scale) - log_sum);
        results[0] = static_cast<float>(loss);
        results[1] = static_cast<float>(log_sum);
        results[2] = static_cast<float>(others);
      }
      narrow_into(losses, i, 1, &results[0]);
      narrow_into(lse, i, 1, &results[1]);
      narrow_into(rest, i, 1, &results[2]);
    }
  });
}

void divergence_gradients_of_rows(Out dlogits, In logits, In lse, In rest, const int32_t* top,
                                  In log_p, const TopClasses& classes, float factor, Rows rows,
                                  Classes columns) {
  const int64_t k = classes.count;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    FloatBlock output;
    for (int64_t i = first; i < last; ++i) {
      const int32_t *of_row = top + i * k, *next = of_row;
      const bool ignored = of_row[0] < 0;
      float stored = 0;
      const float log_sum = *widened(lse, i, 1, &stored);
      const float others = *widened(rest, i, 1, &stored);
      const double p_rest = math::exp(log_probability_at(log_p, i * (k + 1) + k)),
                   q_rest = math::exp(double{others} - log_sum);
      // Without other classes, all elements are replaced below.
      const float shift = others == kNone ? 0 : others;
      const float row_factor = factor * static_cast<float>(q_rest - p_rest);
      each_scaled_block(
          logits, i * rows.width, rows.width, classes.scale,
          [&](const float* z, int64_t begin, int64_t count) HWY_ATTR {
            float* room = room_for(dlogits, i * rows.width + begin, output.values);
            if (ignored) {
              std::fill_n(room, count, 0.0f);
              return narrow_into(dlogits, i * rows.width + begin, count, room);
            }
            map(
                room, count,
                [&](Vector v)
                    HWY_ATTR { return hn::Mul(exp_of(hn::Sub(v, all(shift))), all(row_factor)); },
                z);
            const int64_t from = columns.first + begin;
            while (next < of_row + k && *next < from) ++next;
            for (; next < of_row + k && *next < from + count; ++next) {
              const double p = math::exp(log_probability_at(log_p, i * (k + 1) + (next - of_row)));
              const double q = math::exp(double{z[*next - from]} - log_sum);
              room[*next - from] = factor * static_cast<float>(q - p);
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

HWY_EXPORT(divergences_of_rows);
HWY_EXPORT(divergence_gradients_of_rows);

void kl_divergence(Out losses, Out lse, Out rest, In logits, Indices top, In log_p,
                   const TopClasses& classes, Rows rows) {
  check_stored_types(losses, lse, rest, logits, log_p);
  HWY_DYNAMIC_DISPATCH(divergences_of_rows)(losses, lse, rest, logits, top, log_p, classes, rows);
}

void kl_divergence_backward(Out dlogits, In logits, In lse, In rest, Indices top, In log_p,
                            const TopClasses& classes, float factor, Rows rows, Classes columns) {
  check_stored_types(dlogits, logits, lse, rest, log_p);
  HWY_DYNAMIC_DISPATCH(divergence_gradients_of_rows)
  (dlogits, logits, lse, rest, top, log_p, classes, factor, rows, columns);
}

}  // namespace fovea::cpu
#endif
