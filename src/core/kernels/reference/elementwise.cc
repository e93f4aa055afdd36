// Functions of each element, and sums over elements.

#include <cmath>
#include <numbers>

#include "fovea/core/random.h"
#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void convert(Out y, In x, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i));
}

void add(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(a, i) + get(b, i));
}

void multiply(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(a, i) * get(b, i));
}

void scale(Out y, In x, float factor, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i) * factor);
}

void shift(Out y, In x, float offset, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, get(x, i) + offset);
}

void minimum(Out y, In a, In b, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double left = get(a, i), right = get(b, i);
    put(y, i, left < right || std::isnan(left) ? left : right);
  }
}

void minimum_backward(Out dx, In dy, In x, In other, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double left = get(x, i), right = get(other, i);
    put(dx, i, get(dy, i) * (left < right ? 1 : left == right ? 0.5 : 0));
  }
}

void clip(Out y, In x, float least, float most, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double value = get(x, i);
    put(y, i, value < least ? least : value > most ? most : value);
  }
}

void clip_backward(Out dx, In dy, In x, float least, float most, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double value = get(x, i);
    put(dx, i, value >= least && value <= most ? get(dy, i) : 0);
  }
}

void softcap(Out y, In x, float cap, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, cap * std::tanh(get(x, i) / cap));
}

void softcap_backward(Out dx, In dy, In x, float cap, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double tanh = std::tanh(get(x, i) / cap);
    put(dx, i, get(dy, i) * (1 - tanh * tanh));
  }
}

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

namespace {

double value(Elementary kind, double x) {
  switch (kind) {
    case Elementary::exp: return std::exp(x);
    case Elementary::log: return std::log(x);
    case Elementary::log_sigmoid:
      return x < 0 ? x - std::log1p(std::exp(x)) : -std::log1p(std::exp(-x));
  }
  return x;
}

double derivative(Elementary kind, double x) {
  switch (kind) {
    case Elementary::exp: return std::exp(x);
    case Elementary::log: return 1 / x;
    case Elementary::log_sigmoid: return 1 / (1 + std::exp(x));
  }
  return 1;
}

}  // namespace

void elementary(Out y, In x, Elementary kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(y, i, value(kind, get(x, i)));
}

void elementary_backward(Out dx, In dy, In x, Elementary kind, int64_t size) {
  for (int64_t i = 0; i < size; ++i) put(dx, i, get(dy, i) * derivative(kind, get(x, i)));
}

void dropout(Out y, In x, const Dropout& dropout, int64_t size) {
  const int64_t unit = size / dropout.units;
  for (int64_t i = 0; i < size; ++i) {
    const auto number =
        static_cast<uint64_t>((dropout.first_unit + i / unit) * ((unit + 3) / 4 * 4) + i % unit);
    const uint64_t counter = (dropout.step << 32) + number / 4;
    const auto words = philox(dropout.seed, Stream::dropout, dropout.substream, counter);
    const bool drop = uniform(words[number % 4]) < dropout.probability;
    put(y, i, drop ? 0 : get(x, i) / (1 - static_cast<double>(dropout.probability)));
  }
}

void scale_columns(Out y, In x, In factors, In bias, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t j = i % rows.width;
    put(y, i, get(x, i) * get(factors, j) + (bias.data == nullptr ? 0 : get(bias, j)));
  }
}

void sum_rows(Out y, In x, Rows rows) {
  for (int64_t j = 0; j < rows.width; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < rows.count; ++i) sum += get(x, i * rows.width + j);
    put(y, j, sum);
  }
}

double sum(In x, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += get(x, i);
  return sum;
}

double sum_of_squares(In x, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += get(x, i) * get(x, i);
  return sum;
}

}  // namespace fovea::reference
