#include <cmath>
#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void dynamic_tanh(Out y, In x, In alpha, In weight, In bias, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t j = i % rows.width;
    const double shift = bias.data == nullptr ? 0 : get(bias, j);
    put(y, i, get(weight, j) * std::tanh(get(alpha, 0) * get(x, i)) + shift);
  }
}

void dynamic_tanh_backward(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x, In alpha,
                           In weight, Rows rows) {
  double alpha_sum = 0;
  std::vector<double> weight_sums(static_cast<size_t>(rows.width)), bias_sums(weight_sums);
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t j = i % rows.width;
    const double t = std::tanh(get(alpha, 0) * get(x, i));
    const double g = get(dy, i) * get(weight, j) * (1 - t * t);
    put(dx, i, get(alpha, 0) * g);
    alpha_sum += g * get(x, i);
    weight_sums[static_cast<size_t>(j)] += get(dy, i) * t;
    bias_sums[static_cast<size_t>(j)] += get(dy, i);
  }
  put(dalpha, 0, alpha_sum);
  for (int64_t j = 0; j < rows.width; ++j) {
    put(dweight, j, weight_sums[static_cast<size_t>(j)]);
    put(dbias, j, bias_sums[static_cast<size_t>(j)]);
  }
}

}  // namespace fovea::reference
