// The elementary functions of one number, and their derivatives.

#if defined(FOVEA_KERNELS_CPU_ELEMENTARY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ELEMENTARY_INL_H_
#undef FOVEA_KERNELS_CPU_ELEMENTARY_INL_H_
#else
#define FOVEA_KERNELS_CPU_ELEMENTARY_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/log-inl.h"
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

// Calls use() with the std::type_identity of the struct that implements `kind`.
template <class Use>
HWY_INLINE void with_elementary(Elementary kind, Use&& use) {
  switch (kind) {
    case Elementary::exp: return use(std::type_identity<Exponential>());
    case Elementary::log: return use(std::type_identity<Logarithm>());
    case Elementary::log_sigmoid: return use(std::type_identity<LogSigmoid>());
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
