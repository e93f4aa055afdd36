// Fits a logistic regression to points of two classes by gradient descent.
//   usage: logistic_regression

#include <fovea/core.h>

#include <iostream>
#include <vector>

using namespace fovea;

int main() {
  Random random(1, Stream::sampling);
  std::vector<float> points;
  std::vector<int32_t> classes;
  for (int i = 0; i < 500; ++i) {
    const float x = random.normal(), y = random.normal();
    points.insert(points.end(), {x, y});
    classes.push_back(x + 2 * y > 0.5f ? 1 : 0);
  }
  const Tensor x = tensor_of(points, {500, 2}), labels = tensor_of(classes, {500});
  Tensor weight = zeros({2, 2}), bias = zeros({2});
  weight.want_gradient(), bias.want_gradient();
  for (int step = 0; step <= 500; ++step) {
    const Tensor loss = cross_entropy(linear(x, weight, bias), labels);  // -log softmax(x W^T + b)
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << number_of(loss) << "\n";
    backward(loss);
    for (Tensor* each : {&weight, &bias}) {
      const auto w = each->span<float>(), g = each->gradient().span<float>();
      for (size_t i = 0; i < w.size(); ++i) w[i] -= 2 * g[i];
      each->clear_gradient();
    }
  }
}
