#include <type_traits>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementary.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/log-inl.h"
#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Each function is a pair: its value f(x) and its derivative f'(x).

struct Exponential {
  static HWY_INLINE Vector value(Vector x) { return exp_of(x); }
  static HWY_INLINE Vector derivative(Vector x) { return exp_of(x); }
};

struct Logarithm {
  static HWY_INLINE Vector value(Vector x) { return log_of(x); }
  static HWY_INLINE Vector derivative(Vector x) { return hn::Div(all(1), x); }
};

// log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|))
struct LogSigmoid {
  static HWY_INLINE Vector value(Vector x) {
    const Vector e = exp_of(hn::Neg(hn::Abs(x))), sum = hn::Add(all(1), e);
    // Corrects, to first order, the rounding error of the sum (cf. Goldberg 1991, theorem 4).
    const Vector lost = hn::Div(hn::Sub(e, hn::Sub(sum, all(1))), sum);
    const Vector negative = hn::IfThenZeroElse(hn::Gt(x, all(0)), x);
    return hn::Sub(negative, hn::Add(log_of(sum), lost));
  }
  static HWY_INLINE Vector derivative(Vector x) { return Sigmoid(hn::Neg(x)).value; }
};

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
  switch (kind) {
    case Elementary::exp: return elementary_with<Exponential>(y, x, size);
    case Elementary::log: return elementary_with<Logarithm>(y, x, size);
    case Elementary::log_sigmoid: return elementary_with<LogSigmoid>(y, x, size);
  }
}

void elementary_all_backward(Out dx, In dy, In x, Elementary kind, int64_t size) {
  switch (kind) {
    case Elementary::exp: return elementary_backward_with<Exponential>(dx, dy, x, size);
    case Elementary::log: return elementary_backward_with<Logarithm>(dx, dy, x, size);
    case Elementary::log_sigmoid: return elementary_backward_with<LogSigmoid>(dx, dy, x, size);
  }
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
