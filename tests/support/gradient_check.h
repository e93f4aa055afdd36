#pragma once

// Compares the gradients of an op with central differences, in double precision.

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "fovea/core/random.h"
#include "kernels/reference/number.h"
#include "tensor/tape.h"

namespace fovea::test {

using Function = std::function<Tensor(const std::vector<Tensor>& inputs)>;

inline double at(const Tensor& x, int64_t i) { return reference::get(x, i); }

inline Tensor normal(Shape shape, uint64_t seed, double deviation = 1) {
  Tensor x = empty(std::move(shape), DType::f64);
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < x.size(); ++i) reference::put(x, i, deviation * random.normal());
  return x;
}

// Reduces y to one number; each element has its own weight.
inline Tensor weighted_sum(const Tensor& y) {
  const Tensor weights = convert(convert(normal(y.shape(), 77), DType::bf16), y.dtype());
  double sum = 0;
  for (int64_t i = 0; i < y.size(); ++i) sum += at(y, i) * at(weights, i);
  return record(full({1}, sum, DType::f64), {y},
                [=, y = Saved::slot(y)](const Tensor&, Gradients& d) { d.pass(y, weights); });
}

// Returns the gradients of weighted_sum(f(inputs)) with respect to all inputs; zeros for unused
// inputs.
inline std::vector<Tensor> gradients(std::vector<Tensor>& inputs, const Function& f) {
  for (Tensor& x : inputs) x.want_gradient();
  backward(weighted_sum(f(inputs)));
  std::vector<Tensor> all;
  for (const Tensor& x : inputs)
    all.push_back(x.gradient() ? x.gradient() : zeros(x.shape(), x.dtype()));
  return all;
}

// Compares at most `most` elements of the gradient of each input, spread evenly.
inline void check_gradients(std::vector<Tensor> inputs, const Function& f, int64_t most = 200) {
  constexpr double kStep = 1e-6, kAbsolute = 1e-5, kRelative = 1e-3;
  const std::vector<Tensor> analytic = gradients(inputs, f);
  const NoGradient off;
  for (size_t n = 0; n < inputs.size(); ++n) {
    const Tensor& x = inputs[n];
    const int64_t stride = std::max<int64_t>(1, (x.size() + most - 1) / most);
    for (int64_t i = 0; i < x.size(); i += stride) {
      const double value = at(x, i);
      const auto moved = [&](double step) {
        reference::put(x, i, value + step);
        return at(weighted_sum(f(inputs)), 0);
      };
      const double numeric = (moved(kStep) - moved(-kStep)) / (2 * kStep);
      reference::put(x, i, value);
      ASSERT_NEAR(at(analytic[n], i), numeric, kAbsolute + kRelative * std::abs(numeric))
          << "input " << n << ", element " << i;
    }
  }
}

}  // namespace fovea::test
