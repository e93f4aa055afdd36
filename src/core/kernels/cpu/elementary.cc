#include <type_traits>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementary.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/elementary-inl.h"
#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class F>
void elementary_with(Out y, In x, int64_t size) {
  map_all(y, size, [](Vector v) HWY_ATTR { return F::value(v); }, x);
}

template <class F>
void elementary_backward_with(Out dx, In dy, In x, int64_t size) {
  map_all(
      dx, size, [](Vector g, Vector v) HWY_ATTR { return hn::Mul(g, F::derivative(v)); }, dy, x);
}

void elementary_all(Out y, In x, Elementary kind, int64_t size) {
  with_elementary(kind, [&](auto f) { elementary_with<typename decltype(f)::type>(y, x, size); });
}

void elementary_all_backward(Out dx, In dy, In x, Elementary kind, int64_t size) {
  with_elementary(
      kind, [&](auto f) { elementary_backward_with<typename decltype(f)::type>(dx, dy, x, size); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(elementary_all);
HWY_EXPORT(elementary_all_backward);

void elementary(Out y, In x, Elementary kind, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(elementary_all)(y, x, kind, size);
}

void elementary_backward(Out dx, In dy, In x, Elementary kind, int64_t size) {
  check_stored_types(dx, dy, x);
  HWY_DYNAMIC_DISPATCH(elementary_all_backward)(dx, dy, x, kind, size);
}

}  // namespace fovea::cpu
#endif
