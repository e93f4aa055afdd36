#include <type_traits>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/activation.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/map-inl.h"
#include "kernels/cpu/sigmoid-inl.h"

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
    const Vector near = hn::Max(all(-12), hn::Min(all(12), x));
    const Sigmoid s(twice_u(near));
    const Vector slope =
        hn::Mul(all(kTwoSlope), hn::MulAdd(hn::Mul(near, near), all(3 * kCubic), all(1)));
    return hn::MulAdd(x, hn::Mul(s.slope, slope), s.value);
  }
};

template <class F>
void forward_with(Out y, In x, int64_t size) {
  map_all(
      y, size, [](Vector v) HWY_ATTR { return F::value(v); }, x);
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

// Calls use() with the std::type_identity of the struct that implements `kind`.
template <class Use>
void with_function(Activation kind, Use&& use) {
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
