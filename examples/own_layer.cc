// A layer of one's own, y = x + sin(a x)^2 / a with a learned a for each column (Ziyin et al. 2020,
// "Neural Networks Fail to Learn Periodic Functions", eq. 3), whose gradient it gives itself. It
// checks the gradient, and learns a sine with it.
//   usage: own_layer

#include <fovea/core.h>
#include <fovea/nn.h>

#include <cmath>
#include <iostream>
#include <vector>

namespace nn = fovea::nn;
using fovea::Tensor;

// x [..., C], a [C] -> [..., C]
Tensor snake(const Tensor& x, const Tensor& a) {
  const Tensor y = fovea::empty_like(x);
  const auto in = x.span<float>(), rate = a.span<float>(), out = y.span<float>();
  for (size_t i = 0; i < in.size(); ++i) {
    const float r = rate[i % rate.size()], s = std::sin(r * in[i]);
    out[i] = in[i] + s * s / r;
  }
  return fovea::record(y, {x, a}, [x = fovea::Saved(x), a](const Tensor& dy, fovea::Gradients& d) {
    const Tensor at = x.elements(), dx = fovea::empty_like(at), da = fovea::zeros(a.shape());
    const auto from = at.span<float>(), g = dy.span<float>();
    const auto to_x = dx.span<float>(), to_a = da.span<float>();
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t c = i % to_a.size();
      const float r = a.span<float>()[c], s = std::sin(r * from[i]);
      const float slope = std::sin(2 * r * from[i]);
      to_x[i] = g[i] * (1 + slope);                         // dy/dx = 1 + sin(2 a x)
      to_a[c] += g[i] * (from[i] * slope - s * s / r) / r;  // dy/da
    }
    d.pass(x, dx);
    d.pass(a, da);
  });
}

nn::Layer snake_layer(int64_t width) {
  const auto a = std::make_shared<nn::Parameter>(
      nn::Parameter{.value = fovea::full({width}, 1), .decays = false});
  return {[a](const Tensor& x, const nn::Pass&) { return snake(x, a->value); }, {{"a", a}}};
}

// Returns the largest difference between the gradient of sum(snake(x, a)) and differences.
double gradient_error(std::vector<float> x, std::vector<float> a) {
  Tensor given = fovea::tensor_of(x, {std::ssize(x)}), rate = fovea::tensor_of(a, {std::ssize(a)});
  given.want_gradient(), rate.want_gradient();
  fovea::backward(fovea::sum(snake(given, rate)));
  double worst = 0;
  const fovea::NoGradient off;
  for (const Tensor& leaf : {given, rate}) {
    const auto values = leaf.span<float>(), gradient = leaf.gradient().span<float>();
    for (size_t i = 0; i < values.size(); ++i) {
      const float kept = values[i], step = 1e-2f;
      const auto at = [&](float value) {
        values[i] = value;
        return fovea::number_of(fovea::sum(snake(given, rate)));
      };
      const double slope = (at(kept + step) - at(kept - step)) / (2 * step);
      values[i] = kept;
      worst = std::max(worst, std::abs(slope - gradient[i]));
    }
  }
  return worst;
}

int main() {
  std::cout << "largest error of the gradient: "
            << gradient_error({-1.5f, -0.3f, 0.2f, 0.9f, 1.7f, 2.5f}, {0.7f, 1.3f}) << "\n";

  const nn::Layer model = nn::sequence(
      {nn::linear(1, 32, true, 1, 1.0f), snake_layer(32), nn::linear(32, 1, true, 2, 0.1f)});
  nn::Optimizer optimizer(model.parameters(), {.weight_decay = 0});
  std::vector<float> xs, ys;
  for (int i = -64; i < 64; ++i)
    xs.push_back(0.05f * static_cast<float>(i)), ys.push_back(std::sin(4 * xs.back()));
  const Tensor x = fovea::tensor_of(xs, {std::ssize(xs), 1}),
               y = fovea::tensor_of(ys, {std::ssize(ys), 1});
  double loss = 0;
  for (int step = 0; step < 1000; ++step) {
    const Tensor error = fovea::subtract(model(x), y);
    const Tensor mean = fovea::mean(fovea::multiply(error, error));
    loss = fovea::number_of(mean);
    fovea::backward(mean);
    optimizer.step(1e-2);
  }
  std::cout << "mean squared error of a sine: " << loss << "\n";
}
