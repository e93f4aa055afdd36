#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void convert_all(Out y, In x, int64_t size) {
  map_all(y, size, [](Vector v) HWY_ATTR { return v; }, x);
}

void add_all(Out y, In a, In b, int64_t size) {
  map_all(y, size, [](Vector v, Vector w) HWY_ATTR { return hn::Add(v, w); }, a, b);
}

void multiply_all(Out y, In a, In b, int64_t size) {
  map_all(y, size, [](Vector v, Vector w) HWY_ATTR { return hn::Mul(v, w); }, a, b);
}

void scale_all(Out y, In x, float factor, int64_t size) {
  map_all(y, size, [factor](Vector v) HWY_ATTR { return hn::Mul(v, all(factor)); }, x);
}

void shift_all(Out y, In x, float offset, int64_t size) {
  map_all(y, size, [offset](Vector v) HWY_ATTR { return hn::Add(v, all(offset)); }, x);
}

// minimum and clip use comparisons instead of hn::Min and hn::Max, whose result for NaN depends on
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

void cap_all(Out y, In x, float cap, int64_t size) {
  const auto capped = [cap](Vector v)
                          HWY_ATTR { return hn::Mul(all(cap), tanh_of(hn::Div(v, all(cap)))); };
  map_all(y, size, capped, x);
}

void cap_all_backward(Out dx, In dy, In x, float cap, int64_t size) {
  const auto gradient = [cap](Vector g, Vector v)
                            HWY_ATTR { return hn::Mul(g, tanh_slope_of(hn::Div(v, all(cap)))); };
  map_all(dx, size, gradient, dy, x);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(convert_all);
HWY_EXPORT(add_all);
HWY_EXPORT(multiply_all);
HWY_EXPORT(scale_all);
HWY_EXPORT(shift_all);
HWY_EXPORT(minimum_all);
HWY_EXPORT(minimum_all_backward);
HWY_EXPORT(clip_all);
HWY_EXPORT(clip_all_backward);
HWY_EXPORT(cap_all);
HWY_EXPORT(cap_all_backward);

void convert(Out y, In x, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(convert_all)(y, x, size);
}

void add(Out y, In a, In b, int64_t size) {
  check_stored_types(y, a, b);
  HWY_DYNAMIC_DISPATCH(add_all)(y, a, b, size);
}

void multiply(Out y, In a, In b, int64_t size) {
  check_stored_types(y, a, b);
  HWY_DYNAMIC_DISPATCH(multiply_all)(y, a, b, size);
}

void scale(Out y, In x, float factor, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(scale_all)(y, x, factor, size);
}

void shift(Out y, In x, float offset, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(shift_all)(y, x, offset, size);
}

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

void softcap(Out y, In x, float cap, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(cap_all)(y, x, cap, size);
}

void softcap_backward(Out dx, In dy, In x, float cap, int64_t size) {
  check_stored_types(dx, dy, x);
  HWY_DYNAMIC_DISPATCH(cap_all_backward)(dx, dy, x, cap, size);
}

}  // namespace fovea::cpu
#endif
