// Functions of each element.

#include "kernels/cuda/numbers.h"
//
#include "kernels/cpu/activation-inl.h"
#include "kernels/cpu/elementary-inl.h"

namespace fovea::cuda {

using namespace cpu::one_number;

// y (+)= f(x...)
template <class F, class... Inputs>
DEVICE void map_all(Out y, int64_t size, const F& f, Inputs... x) {
  for (int64_t i = first_element(); i < size; i += element_stride()) put(y, i, f(get(x, i)...));
}

KERNEL(convert)(Out y, In x, int64_t size) {
  map_all(y, size, [](float v) { return v; }, x);
}

KERNEL(add)(Out y, In a, In b, int64_t size) {
  map_all(y, size, [](float v, float w) { return v + w; }, a, b);
}

KERNEL(multiply)(Out y, In a, In b, int64_t size) {
  map_all(y, size, [](float v, float w) { return v * w; }, a, b);
}

KERNEL(scale)(Out y, In x, float factor, int64_t size) {
  map_all(y, size, [=](float v) { return v * factor; }, x);
}

KERNEL(shift)(Out y, In x, float offset, int64_t size) {
  map_all(y, size, [=](float v) { return v + offset; }, x);
}

KERNEL(softcap)(Out y, In x, float cap, int64_t size) {
  map_all(y, size, [=](float v) { return cap * tanh_of(v / cap); }, x);
}

KERNEL(softcap_backward)(Out dx, In dy, In x, float cap, int64_t size) {
  map_all(dx, size, [=](float g, float v) { return g * tanh_slope_of(v / cap); }, dy, x);
}

// Rounds as a store of x's dtype and a load would.
DEVICE float as_stored(float value, In x) {
  return x.dtype == DType::bf16 ? widen(narrow(value)) : value;
}

KERNEL(activation)(Out y, In x, Activation kind, int64_t size) {
  with_function(kind, [&](auto f) {
    map_all(y, size, [](float v) { return decltype(f)::type::value(v); }, x);
  });
}

KERNEL(gated_activation)(Out y, In x, In factor, Activation kind, int64_t size) {
  with_function(kind, [&](auto f) {
    const auto gated = [&](float v, float w) {
      return as_stored(decltype(f)::type::value(v), x) * w;
    };
    map_all(y, size, gated, x, factor);
  });
}

KERNEL(activation_backward)(Out dx, In dy, In x, Activation kind, int64_t size) {
  with_function(kind, [&](auto f) {
    map_all(dx, size, [](float g, float v) { return g * decltype(f)::type::derivative(v); }, dy, x);
  });
}

KERNEL(gated_activation_backward)
(Out dx, Out dfactor, In dy, In x, In factor, Activation kind, int64_t size) {
  with_function(kind, [&](auto f) {
    using F = typename decltype(f)::type;
    const auto of_factor = [&](float g, float v) { return g * as_stored(F::value(v), x); };
    const auto of_x = [&](float g, float v, float w) {
      return as_stored(g * w, x) * F::derivative(v);
    };
    if (dfactor.data != nullptr) map_all(dfactor, size, of_factor, dy, x);
    if (dx.data != nullptr) map_all(dx, size, of_x, dy, x, factor);
  });
}

KERNEL(elementary)(Out y, In x, Elementary kind, int64_t size) {
  with_elementary(kind, [&](auto f) {
    map_all(y, size, [](float v) { return decltype(f)::type::value(v); }, x);
  });
}

KERNEL(elementary_backward)(Out dx, In dy, In x, Elementary kind, int64_t size) {
  with_elementary(kind, [&](auto f) {
    map_all(dx, size, [](float g, float v) { return g * decltype(f)::type::derivative(v); }, dy, x);
  });
}

KERNEL(minimum)(Out y, In a, In b, int64_t size) {
  map_all(y, size, [](float v, float w) { return v < w || v != v ? v : w; }, a, b);
}

KERNEL(minimum_backward)(Out dx, In dy, In x, In other, int64_t size) {
  const auto gradient = [](float g, float v, float w) {
    return v <= w ? g * (v == w ? 0.5f : 1.0f) : 0;
  };
  map_all(dx, size, gradient, dy, x, other);
}

KERNEL(clip)(Out y, In x, float least, float most, int64_t size) {
  const auto clipped = [=](float v) {
    const float above = v < least ? least : v;
    return above > most ? most : above;
  };
  map_all(y, size, clipped, x);
}

KERNEL(clip_backward)(Out dx, In dy, In x, float least, float most, int64_t size) {
  map_all(dx, size, [=](float g, float v) { return v >= least && v <= most ? g : 0; }, dy, x);
}

}  // namespace fovea::cuda
