#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

template <class F>
void forward_with(Out y, In x, int64_t size) {
  map_all(y, size, [](Vector v) HWY_ATTR { return F::value(v); }, x);
}

// Rounds as a store of this type and a load would.
template <bool halves>
HWY_INLINE Vector as_stored(Vector x) {
  return halves ? widen_half(narrow_half(x)) : x;
}

template <class F, bool halves>
void gated_with(Out y, In x, In factor, int64_t size) {
  map_all(
      y, size,
      [](Vector v, Vector w) HWY_ATTR { return hn::Mul(as_stored<halves>(F::value(v)), w); }, x,
      factor);
}

template <class F, bool halves>
void gated_backward_with(Out dx, Out dfactor, In dy, In x, In factor, int64_t size) {
  if (dfactor.data != nullptr)
    map_all(
        dfactor, size,
        [](Vector g, Vector v) HWY_ATTR { return hn::Mul(g, as_stored<halves>(F::value(v))); }, dy,
        x);
  if (dx.data != nullptr)
    map_all(
        dx, size,
        [](Vector g, Vector v, Vector w)
            HWY_ATTR { return hn::Mul(as_stored<halves>(hn::Mul(g, w)), F::derivative(v)); },
        dy, x, factor);
}

template <class F>
void backward_with(Out dx, In dy, In x, int64_t size) {
  map_all(
      dx, size, [](Vector g, Vector v) HWY_ATTR { return hn::Mul(g, F::derivative(v)); }, dy, x);
}

// Calls use() with a std::bool_constant that tells whether x is stored in bf16.
template <class Use>
void with_stored(In x, Use&& use) {
  if (x.dtype == DType::bf16) return use(std::true_type());
  use(std::false_type());
}

void activate(Out y, In x, Activation kind, int64_t size) {
  with_function(kind,
                [&](auto f) HWY_ATTR { forward_with<typename decltype(f)::type>(y, x, size); });
}

void activate_gated(Out y, In x, In factor, Activation kind, int64_t size) {
  with_function(kind, [&](auto f) HWY_ATTR {
    with_stored(x, [&](auto halves) HWY_ATTR {
      gated_with<typename decltype(f)::type, decltype(halves)::value>(y, x, factor, size);
    });
  });
}

void activate_gated_backward(Out dx, Out dfactor, In dy, In x, In factor, Activation kind,
                             int64_t size) {
  with_function(kind, [&](auto f) HWY_ATTR {
    with_stored(x, [&](auto halves) HWY_ATTR {
      gated_backward_with<typename decltype(f)::type, decltype(halves)::value>(dx, dfactor, dy, x,
                                                                               factor, size);
    });
  });
}

void activate_backward(Out dx, In dy, In x, Activation kind, int64_t size) {
  with_function(
      kind, [&](auto f) HWY_ATTR { backward_with<typename decltype(f)::type>(dx, dy, x, size); });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(activate);
HWY_EXPORT(activate_gated);
HWY_EXPORT(activate_backward);
HWY_EXPORT(activate_gated_backward);

void activation(Out y, In x, Activation kind, int64_t size) {
  check_stored_types(y, x);
  HWY_DYNAMIC_DISPATCH(activate)(y, x, kind, size);
}

void gated_activation(Out y, In x, In factor, Activation kind, int64_t size) {
  check_stored_types(y, x, factor);
  HWY_DYNAMIC_DISPATCH(activate_gated)(y, x, factor, kind, size);
}

void activation_backward(Out dx, In dy, In x, Activation kind, int64_t size) {
  check_stored_types(dx, dy, x);
  HWY_DYNAMIC_DISPATCH(activate_backward)(dx, dy, x, kind, size);
}

void gated_activation_backward(Out dx, Out dfactor, In dy, In x, In factor, Activation kind,
                               int64_t size) {
  check_stored_types(dx, dfactor, dy, x, factor);
  HWY_DYNAMIC_DISPATCH(activate_gated_backward)(dx, dfactor, dy, x, factor, kind, size);
}

}  // namespace fovea::cpu
#endif
