#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/limits.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// These functions compare instead of calling hn::Min and hn::Max, whose result for NaN depends on
// the instruction set.

void minimum_all(Out y, In a, In b, int64_t size) {
  const auto smaller = [](Vector v, Vector w) HWY_ATTR {
    return hn::IfThenElse(hn::Or(hn::Lt(v, w), hn::IsNaN(v)), v, w);
  };
  map_all(y, size, smaller, a, b);
}

void minimum_all_backward(Out dx, In dy, In x, In other, int64_t size) {
  const auto gradient = [](Vector g, Vector v, Vector w) HWY_ATTR {
    const Vector share = hn::IfThenElse(hn::Eq(v, w), all(0.5f), all(1));
    return hn::IfThenElseZero(hn::Le(v, w), hn::Mul(g, share));
  };
  map_all(dx, size, gradient, dy, x, other);
}

void clip_all(Out y, In x, float least, float most, int64_t size) {
  const auto clipped = [=](Vector v) HWY_ATTR {
    const Vector above = hn::IfThenElse(hn::Lt(v, all(least)), all(least), v);
    return hn::IfThenElse(hn::Gt(above, all(most)), all(most), above);
  };
  map_all(y, size, clipped, x);
}

void clip_all_backward(Out dx, In dy, In x, float least, float most, int64_t size) {
  const auto gradient = [=](Vector g, Vector v) HWY_ATTR {
    return hn::IfThenElseZero(hn::And(hn::Ge(v, all(least)), hn::Le(v, all(most))), g);
  };
  map_all(dx, size, gradient, dy, x);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(minimum_all);
HWY_EXPORT(minimum_all_backward);
HWY_EXPORT(clip_all);
HWY_EXPORT(clip_all_backward);

void minimum(Out y, In a, In b, int64_t size) {
  check_stored_types(y, a, b);
  HWY_DYNAMIC_DISPATCH(minimum_all)(y, a, b, size);
}

void minimum_backward(Out dx, In dy, In x, In other, int64_t size) {
  check_stored_types(dx, dy, x, other);
  HWY_DYNAMIC_DISPATCH(minimum_all_backward)(dx, dy, x, other, size);
}

void clip(Out y, In x, float least, float most, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(clip_all)(y, x, least, most, size);
}

void clip_backward(Out dx, In dy, In x, float least, float most, int64_t size) {
  check_stored_types(dx, dy, x);
  HWY_DYNAMIC_DISPATCH(clip_all_backward)(dx, dy, x, least, most, size);
}

}  // namespace fovea::cpu
#endif
