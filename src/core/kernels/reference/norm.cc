#include <cmath>
#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

namespace {

// The statistics of a normalised row: x_hat = (x - mean) * scale.
struct Statistics {
  double mean = 0, scale = 0;
};

// Computes row i's gradient: with g = dy * weight, dx = scale * (g - centre - x_hat * slope), where
// centre = mean(g) if the mean was subtracted, else 0, and slope = mean(g * x_hat) * steepness.
// Adds dy * x_hat to dweight and dy to dbias.
void row_backward(Out dx, std::vector<double>& dweight, std::vector<double>& dbias, In dy, In x,
                  In weight, Statistics saved, bool centred, double steepness, int64_t i,
                  int64_t width) {
  const auto x_hat = [&](int64_t j) { return (get(x, i * width + j) - saved.mean) * saved.scale; };
  const auto g = [&](int64_t j) { return get(dy, i * width + j) * get(weight, j); };
  double sum = 0, sum_x_hat = 0;
  for (int64_t j = 0; j < width; ++j) {
    sum += g(j);
    sum_x_hat += g(j) * x_hat(j);
    dweight[static_cast<size_t>(j)] += get(dy, i * width + j) * x_hat(j);
    dbias[static_cast<size_t>(j)] += get(dy, i * width + j);
  }
  const double count = static_cast<double>(width);
  const double centre = centred ? sum / count : 0;
  for (int64_t j = 0; j < width; ++j) {
    put(dx, i * width + j,
        saved.scale * (g(j) - centre - x_hat(j) * sum_x_hat / count * steepness));
  }
}

// Returns (deviation + epsilon) / deviation if epsilon is outside the root, else 1; 0 for a row of
// equal numbers.
double steepness(double scale, NormEpsilon epsilon) {
  if (!epsilon.outside) return 1;
  const double share = 1 - epsilon.value * scale;  // deviation / (deviation + epsilon)
  return share > 0 ? 1 / share : 0;
}

void put_all(Out y, const std::vector<double>& values) {
  for (size_t j = 0; j < values.size(); ++j) put(y, static_cast<int64_t>(j), values[j]);
}

}  // namespace

void layer_norm(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon,
                Rows rows) {
  const double count = static_cast<double>(rows.width);
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < rows.width; ++j) sum += get(x, row + j);
    const double centre = sum / count;
    for (int64_t j = 0; j < rows.width; ++j) squares += std::pow(get(x, row + j) - centre, 2);
    const double inside = epsilon.outside ? 0 : epsilon.value;
    const double deviation = std::sqrt(squares / count + inside);
    const double factor = 1 / (deviation + (epsilon.outside ? epsilon.value : 0));
    for (int64_t j = 0; j < rows.width; ++j) {
      const double shift = bias.data == nullptr ? 0 : get(bias, j);
      put(y, row + j, (get(x, row + j) - centre) * factor * get(weight, j) + shift);
    }
    put(mean, i, centre);
    put(scale, i, factor);
  }
}

void layer_norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                         NormEpsilon epsilon, Rows rows) {
  std::vector<double> weight_sums(static_cast<size_t>(rows.width)), bias_sums(weight_sums);
  for (int64_t i = 0; i < rows.count; ++i) {
    row_backward(dx, weight_sums, bias_sums, dy, x, weight, {get(mean, i), get(scale, i)}, true,
                 steepness(get(scale, i), epsilon), i, rows.width);
  }
  put_all(dweight, weight_sums);
  put_all(dbias, bias_sums);
}

void rms_norm(Out y, Out scale, In x, In weight, float epsilon, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double squares = 0;
    for (int64_t j = 0; j < rows.width; ++j) squares += get(x, row + j) * get(x, row + j);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(rows.width) + epsilon);
    for (int64_t j = 0; j < rows.width; ++j)
      put(y, row + j, get(x, row + j) * factor * get(weight, j));
    put(scale, i, factor);
  }
}

void rms_norm_backward(Out dx, Out dweight, In dy, In x, In scale, In weight, Rows rows) {
  std::vector<double> weight_sums(static_cast<size_t>(rows.width)), unused(weight_sums);
  for (int64_t i = 0; i < rows.count; ++i) {
    row_backward(dx, weight_sums, unused, dy, x, weight, {0, get(scale, i)}, false, 1, i,
                 rows.width);
  }
  put_all(dweight, weight_sums);
}

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
