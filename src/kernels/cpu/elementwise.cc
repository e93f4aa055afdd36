#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void convert_all(Out y, In x, int64_t size) {
  map_all(
      y, size, [](Vector v) HWY_ATTR { return v; }, x);
}

void add_all(Out y, In a, In b, int64_t size) {
  map_all(
      y, size, [](Vector v, Vector w) HWY_ATTR { return hn::Add(v, w); }, a, b);
}

void multiply_all(Out y, In a, In b, int64_t size) {
  map_all(
      y, size, [](Vector v, Vector w) HWY_ATTR { return hn::Mul(v, w); }, a, b);
}

void scale_all(Out y, In x, float factor, int64_t size) {
  map_all(
      y, size, [factor](Vector v) HWY_ATTR { return hn::Mul(v, all(factor)); }, x);
}

void shift_all(Out y, In x, float offset, int64_t size) {
  map_all(
      y, size, [offset](Vector v) HWY_ATTR { return hn::Add(v, all(offset)); }, x);
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

}  // namespace fovea::cpu
#endif
