#include <cmath>
#include <numbers>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

// gelu_tanh (Hendrycks and Gimpel 2016): x / 2 * (1 + tanh(kSlope * (x + kCubic * x^3))).
const double kSlope = std::sqrt(2 / std::numbers::pi);
constexpr double kCubic = 0.044715;
constexpr double kQuick = 1.702;  // quick_gelu, ibid.

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double value(Activation kind, double x) {
  switch (kind) {
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::gelu: return x * normal_cdf(x);
    case Activation::gelu_tanh: return x / 2 * (1 + std::tanh(kSlope * (x + kCubic * x * x * x)));
    case Activation::silu: return x * sigmoid(x);
    case Activation::tanh: return std::tanh(x);
    case Activation::quick_gelu: return x * sigmoid(kQuick * x);
    case Activation::relu_squared: return x < 0 ? 0 : x * x;
    case Activation::sigmoid: return sigmoid(x);
  }
  return x;
}

double derivative(Activation kind, double x) {
  switch (kind) {
    case Activation::relu: return x <= 0 ? 0 : 1;
    case Activation::gelu: return normal_cdf(x) + x * normal_density(x);
    case Activation::gelu_tanh: {
      const double tanh = std::tanh(kSlope * (x + kCubic * x * x * x));
      return (1 + tanh) / 2 + x / 2 * (1 - tanh * tanh) * kSlope * (1 + 3 * kCubic * x * x);
    }
    case Activation::silu: return sigmoid(x) * (1 + x * (1 - sigmoid(x)));
    case Activation::tanh: return 1 - std::tanh(x) * std::tanh(x);
    case Activation::quick_gelu: {
      const double s = sigmoid(kQuick * x);
      return s * (1 + kQuick * x * (1 - s));
    }
    case Activation::relu_squared: return x < 0 ? 0 : 2 * x;
    case Activation::sigmoid: return sigmoid(x) * (1 - sigmoid(x));
  }
  return 1;
}

double as_stored(double value, DType dtype) {
  if (dtype == DType::bf16) return widen(narrow(static_cast<float>(value)));
  return dtype == DType::f32 ? static_cast<double>(static_cast<float>(value)) : value;
}

}  // namespace

void activation(Out y, In x, Activation kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, value(kind, get(x, i)));
}

void gated_activation(Out y, In x, In factor, Activation kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i)
    put(y, i, as_stored(value(kind, get(x, i)), x.dtype) * get(factor, i));
}

void activation_backward(Out dx, In dy, In x, Activation kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(dx, i, get(dy, i) * derivative(kind, get(x, i)));
}

void gated_activation_backward(Out dx, Out dfactor, In dy, In x, In factor, Activation kind,
                               int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double g = get(dy, i), v = get(x, i);
    put(dfactor, i, g * as_stored(value(kind, v), x.dtype));
    put(dx, i, as_stored(g * get(factor, i), x.dtype) * derivative(kind, v));
  }
}

}  // namespace fovea::reference
