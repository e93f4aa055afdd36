#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softcap.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

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

HWY_EXPORT(cap_all);
HWY_EXPORT(cap_all_backward);

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
