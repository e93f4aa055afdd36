#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/math.h"
#include "ops/common.h"
#include "optim/rules.h"

namespace fovea::train {
namespace {

// Shazeer and Stern 2018, algorithms 4 and 5.
constexpr double kLeastSquare = 1e-30;     // epsilon 1, added to the squares of the gradients
constexpr double kLeastScale = 1e-3;       // epsilon 2, of the root mean square of a parameter
constexpr double kDecayExponent = 0.8;     // beta2 = 1 - t^-0.8
constexpr double kMostRootMeanSquare = 1;  // d, of an update

double root_mean_square(const Tensor& x) {
  return std::sqrt(kernels(x).sum_of_squares(x, x.size()) / static_cast<double>(x.size()));
}

// old = beta old + factor added
void mix_in(const Tensor& old, double beta, const Tensor& added, double factor) {
  const Kernels& k = kernels(old);
  Out sum = old;
  k.scale(sum, old, static_cast<float>(beta), old.size());
  sum.add = true;
  k.scale(sum, added, static_cast<float>(factor), old.size());
}

std::vector<float> inverse_roots(const std::vector<float>& x, double numerator) {
  std::vector<float> y(x.size());
  std::transform(x.begin(), x.end(), y.begin(), [&](float value) {
    return static_cast<float>(std::sqrt(numerator / (static_cast<double>(value) + kLeastSquare)));
  });
  return y;
}

// x[r, c] /= sqrt(rows[r] columns[c] / mean(rows)), where rows and columns are moving means of x^2.
void divide_by_factors(const Tensor& x, const Tensor& rows, const Tensor& columns, double beta2) {
  const int64_t R = rows.size(), C = columns.size();
  const Kernels& k = kernels(x);
  const Tensor squares = empty_like(x), sums = empty(columns.shape(), DType::f32, x.device());
  k.multiply(squares, x, x, x.size());
  std::vector<float> means(static_cast<size_t>(R));
  for (int64_t r = 0; r < R; ++r)
    means[static_cast<size_t>(r)] =
        static_cast<float>(k.sum(at(In(squares), r * C), C) / static_cast<double>(C));
  k.sum_rows(sums, squares, {R, C});
  mix_in(rows, beta2, fovea::tensor_of(means, rows.shape()).to(x.device()), 1 - beta2);
  mix_in(columns, beta2, sums, (1 - beta2) / static_cast<double>(R));

  const std::vector<float> row_values = to_floats(rows);
  const double mean =
      std::accumulate(row_values.begin(), row_values.end(), 0.0) / static_cast<double>(R);
  const Tensor by_column =
      fovea::tensor_of(inverse_roots(to_floats(columns), 1), columns.shape()).to(x.device());
  k.scale_columns(x, x, by_column, {}, {R, C});
  const std::vector<float> by_row = inverse_roots(row_values, mean + kLeastSquare);
  for (int64_t r = 0; r < R; ++r)
    k.scale(at(Out(x), r * C), at(In(x), r * C), by_row[static_cast<size_t>(r)], C);
}

// x /= sqrt(v), where v is a moving mean of x^2: a step of AdamW's kernel from a weight of 0,
// without its first moment.
void divide_by_root(Tensor& x, const Tensor& v, double beta2) {
  const Tensor quotient = zeros(x.shape(), DType::f32, x.device()),
               m = zeros(x.shape(), DType::f32, x.device());
  const AdamW step{.rate = -1,
                   .beta1 = 0,
                   .beta2 = static_cast<float>(beta2),
                   .epsilon = static_cast<float>(std::sqrt(kLeastSquare))};
  kernels(x).adamw(quotient, m, v, x, step, x.size());
  x = quotient;
}

}  // namespace

// The rate is relative to the root mean square of the weights, and at most t^-1/2 (section 8),
// unless relative_rate is false. Weight decay is decoupled, as in torch.optim.Adafactor.
void adafactor_rule(const Trained& it, const Tensor& gradient, const RuleStep& step,
                    const OptimizerOptions& o) {
  const Kernels& k = kernels(gradient);
  const Tensor& weight = it.parameter->value;
  const auto t = static_cast<double>(step.number);
  double rate = step.rate;
  if (o.choice.relative_rate)
    rate = std::min(rate, 1 / std::sqrt(t)) * std::max(kLeastScale, root_mean_square(weight));

  Tensor update = empty_like(gradient);
  k.scale(update, gradient, step.gradient_scale, gradient.size());
  const double beta2 = 1 - math::pow(t, -kDecayExponent);
  if (it.values.size() == 2)
    divide_by_factors(update, it.values[0], it.values[1], beta2);
  else
    divide_by_root(update, it.values[0], beta2);
  const double clip = std::max(1.0, root_mean_square(update) / kMostRootMeanSquare);
  mix_in(weight, 1 - step.rate * step.decay, update, -rate / clip);
}

}  // namespace fovea::train
