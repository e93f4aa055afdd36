#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cc"
#include <hwy/foreach_target.h>

#include <limits>
#include <vector>

#include "base/threads.h"
#include "kernels/cpu/exp-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A row is widened as a whole: most rows are short, such as those of a router.

HWY_INLINE float largest(const float* x, int64_t width) {
  Vector most[kParts];
  std::fill_n(most, kParts, all(-std::numeric_limits<float>::infinity()));
  each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
    // Ignores NaN.
    most[part] = access.keep(larger(access.load(x + j), most[part]), most[part]);
  });
  for (int64_t part = 1; part < kParts; ++part) most[0] = larger(most[0], most[part]);
  return hn::GetLane(hn::MaxOfLanes(Floats(), most[0]));
}

void softmax_of_rows(Out y, In x, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(2 * width));
    for (int64_t i = first; i < last; ++i) {
      const float* from = widened(x, i * width, width, scratch.data() + width);
      float* room = room_for(y, i * width, scratch.data());
      const float most = largest(from, width);
      Sum sum;
      each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
        const Vector e = exp_of(hn::Sub(access.load(from + j), all(most)));
        access.store(e, room + j);
        sum.add(e, part, access);
      });
      const float total = sum.total();
      map(room, width, [total](Vector e) HWY_ATTR { return hn::Div(e, all(total)); }, room);
      narrow_into(y, i * width, width, room);
    }
  });
}

HWY_INLINE float dot_of_rows(const float* a, const float* b, int64_t width) {
  Sum sum;
  each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
    sum.add_product(access.load(a + j), access.load(b + j), part, access);
  });
  return sum.total();
}

void softmax_of_rows_backward(Out dx, In dy, In y, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(3 * width));
    for (int64_t i = first; i < last; ++i) {
      const float* g = widened(dy, i * width, width, scratch.data() + width);
      const float* p = widened(y, i * width, width, scratch.data() + 2 * width);
      const float dot = dot_of_rows(g, p, width);
      float* room = room_for(dx, i * width, scratch.data());
      const auto gradient = [dot](Vector a, Vector b)
                                HWY_ATTR { return hn::Mul(b, hn::Sub(a, all(dot))); };
      map(room, width, gradient, g, p);
      narrow_into(dx, i * width, width, room);
    }
  });
}

HWY_INLINE float sum_of_row(const float* x, int64_t width) {
  Sum sum;
  each_vector(width, [&](int64_t j, int64_t part, auto access)
                         HWY_ATTR { sum.add(access.load(x + j), part, access); });
  return sum.total() + kLeastSum;
}

void divide_rows_by_sum(Out y, In x, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(2 * width));
    for (int64_t i = first; i < last; ++i) {
      const float* from = widened(x, i * width, width, scratch.data() + width);
      float* room = room_for(y, i * width, scratch.data());
      const Vector total = all(sum_of_row(from, width));
      map(room, width, [total](Vector v) HWY_ATTR { return hn::Div(v, total); }, from);
      narrow_into(y, i * width, width, room);
    }
  });
}

// dx = (dy - dy . x / sum) / sum
void divide_rows_by_sum_backward(Out dx, In dy, In x, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> scratch(static_cast<size_t>(3 * width));
    for (int64_t i = first; i < last; ++i) {
      const float* g = widened(dy, i * width, width, scratch.data() + width);
      const float* v = widened(x, i * width, width, scratch.data() + 2 * width);
      const float sum = sum_of_row(v, width);
      const Vector total = all(sum), mean = all(dot_of_rows(g, v, width) / sum);
      float* room = room_for(dx, i * width, scratch.data());
      map(room, width, [=](Vector a) HWY_ATTR { return hn::Div(hn::Sub(a, mean), total); }, g);
      narrow_into(dx, i * width, width, room);
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(softmax_of_rows);
HWY_EXPORT(softmax_of_rows_backward);
HWY_EXPORT(divide_rows_by_sum);
HWY_EXPORT(divide_rows_by_sum_backward);

void softmax(Out y, In x, Rows rows) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(softmax_of_rows)(y, x, rows);
}

void softmax_backward(Out dx, In dy, In y, Rows rows) {
  check_stored_types(dx, dy, y);
  HWY_DYNAMIC_DISPATCH(softmax_of_rows_backward)(dx, dy, y, rows);
}

void divide_by_sum(Out y, In x, Rows rows) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(divide_rows_by_sum)(y, x, rows);
}

void divide_by_sum_backward(Out dx, In dy, In x, Rows rows) {
  check_stored_types(dx, dy, x);
  HWY_DYNAMIC_DISPATCH(divide_rows_by_sum_backward)(dx, dy, x, rows);
}

}  // namespace fovea::cpu
#endif
