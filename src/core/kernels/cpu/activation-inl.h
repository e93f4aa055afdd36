// The activation functions of vectors, and their derivatives.

#if defined(FOVEA_KERNELS_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ACTIVATION_INL_H_
#undef FOVEA_KERNELS_CPU_ACTIVATION_INL_H_
#else
#define FOVEA_KERNELS_CPU_ACTIVATION_INL_H_
#endif

#include <type_traits>

#include "kernels/cpu/sigmoid-inl.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Each activation is a pair: its value f(x) and its derivative f'(x).

struct Relu {
  static HWY_INLINE Vector value(Vector x) { return hn::IfThenZeroElse(hn::Lt(x, all(0)), x); }
  static HWY_INLINE Vector derivative(Vector x) {
    return hn::IfThenZeroElse(hn::Le(x, all(0)), all(1));
  }
};

struct ReluSquared {
  static HWY_INLINE Vector value(Vector x) {
    const Vector positive = Relu::value(x);
    return hn::Mul(positive, positive);
  }
  static HWY_INLINE Vector derivative(Vector x) { return hn::Mul(all(2), Relu::value(x)); }
};

struct Tanh {
  static HWY_INLINE Vector value(Vector x) { return tanh_of(x); }
  static HWY_INLINE Vector derivative(Vector x) { return tanh_slope_of(x); }
};

struct Logistic {
  static HWY_INLINE Vector value(Vector x) { return Sigmoid(x).value; }
  static HWY_INLINE Vector derivative(Vector x) { return Sigmoid(x).slope; }
};

struct Silu {
  static HWY_INLINE Vector value(Vector x) {
    return hn::Div(x, hn::Add(all(1), exp_of(hn::Neg(x))));
  }
  static HWY_INLINE Vector derivative(Vector x) {
    const Sigmoid s(x);
    return hn::MulAdd(x, s.slope, s.value);
  }
};

// x sigmoid(1.702 x): SiLU with a different slope.
struct QuickGelu {
  static constexpr float kSlope = 1.702f;

  static HWY_INLINE Vector value(Vector x) {
    return hn::Div(x, hn::Add(all(1), exp_of(hn::Mul(x, all(-kSlope)))));
  }
  static HWY_INLINE Vector derivative(Vector x) {
    const Sigmoid s(hn::Mul(x, all(kSlope)));
    return hn::MulAdd(x, hn::Mul(s.slope, all(kSlope)), s.value);
  }
};

// Exact GELU, x cdf(x). erf is computed by formula 7.1.26 of Abramowitz and Stegun (1964), with an
// error below 1.5e-7. The formula contains the same exponential as the density in the derivative.
struct Gelu {
  Vector cdf, exponential;  // cdf of the standard normal distribution; exp(-x^2 / 2)

  HWY_INLINE explicit Gelu(Vector x) {
    exponential = exp_of(hn::Mul(hn::Mul(x, all(-0.5f)), x));
    const Vector t = hn::Div(all(1), hn::MulAdd(hn::Abs(x), all(0.3275911f * 0.70710678f), all(1)));
    Vector p = hn::MulAdd(all(1.061405429f), t, all(-1.453152027f));
    p = hn::MulAdd(p, t, all(1.421413741f));
    p = hn::MulAdd(p, t, all(-0.284496736f));
    p = hn::MulAdd(p, t, all(0.254829592f));
    const Vector tail = hn::Mul(hn::Mul(hn::Mul(p, t), all(0.5f)), exponential);
    cdf = hn::IfThenElse(hn::Lt(x, all(0)), tail, hn::Sub(all(1), tail));
  }
  static HWY_INLINE Vector value(Vector x) { return hn::Mul(x, Gelu(x).cdf); }
  // cdf + x density
  static HWY_INLINE Vector derivative(Vector x) {
    const Gelu gelu(x);
    return hn::MulAdd(x, hn::Mul(gelu.exponential, all(0.39894228f)), gelu.cdf);
  }
};

// GPT-2's approximation of GELU: x / 2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2 / pi) (x +
// 0.044715 x^3).
struct GeluTanh {
  static constexpr float kTwoSlope = 1.59576912f, kCubic = 0.044715f;  // 2 sqrt(2 / pi)

  static HWY_INLINE Vector twice_u(Vector x) {
    return hn::Mul(hn::Mul(x, all(kTwoSlope)), hn::MulAdd(hn::Mul(x, x), all(kCubic), all(1)));
  }
  static HWY_INLINE Vector value(Vector x) {
    return hn::Div(x, hn::Add(all(1), exp_of(hn::Neg(twice_u(x)))));
  }
  // s + x s' (2u)' with s = sigmoid(2u). s' is exactly 0 for |x| >= 12; clamping x keeps (2u)'
  // finite.
  static HWY_INLINE Vector derivative(Vector x) {
    const Vector near = larger(all(-12), smaller(all(12), x));
    const Sigmoid s(twice_u(near));
    const Vector slope =
        hn::Mul(all(kTwoSlope), hn::MulAdd(hn::Mul(near, near), all(3 * kCubic), all(1)));
    return hn::MulAdd(x, hn::Mul(s.slope, slope), s.value);
  }
};

// Calls use() with the std::type_identity of the struct that implements `kind`.
template <class Use>
HWY_INLINE void with_function(Activation kind, Use&& use) {
  switch (kind) {
    case Activation::relu: return use(std::type_identity<Relu>());
    case Activation::gelu: return use(std::type_identity<Gelu>());
    case Activation::gelu_tanh: return use(std::type_identity<GeluTanh>());
    case Activation::silu: return use(std::type_identity<Silu>());
    case Activation::tanh: return use(std::type_identity<Tanh>());
    case Activation::quick_gelu: return use(std::type_identity<QuickGelu>());
    case Activation::relu_squared: return use(std::type_identity<ReluSquared>());
    case Activation::sigmoid: return use(std::type_identity<Logistic>());
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
