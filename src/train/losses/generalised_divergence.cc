#include "losses/generalised_divergence.h"

#include <algorithm>

#include "base/error.h"
#include "base/math.h"
#include "kernels/sum_tree.h"
#include "ops/units.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// The logarithms of a distribution: of the listed classes [R, k], and of all others [R, 1], which
// is empty if all classes are listed.
struct LogProbabilities {
  Tensor listed, others;
};

// x [R, C] -> [R, 1]
Tensor sums_over_classes(const Tensor& x) {
  return linear(x, full({1, x.dim(1)}, 1, x.dtype(), x.device()));
}
// x [R, 1] -> [R, C]
Tensor in_each_class(const Tensor& x, int64_t columns) {
  return linear(x, full({columns, 1}, 1, x.dtype(), x.device()));
}

// Returns the numbers as a constant of x's kind.
Tensor constant_of(const Tensor& x, const std::vector<float>& numbers, const Shape& shape) {
  return tensor_of(numbers, shape, x.dtype()).to(x.device());
}

// The logarithms of the teacher; that of a class without probability is finite.
LogProbabilities of_teacher(const TopProbabilities& p, const Tensor& x) {
  constexpr float kLeast = -100;
  const int64_t R = p.log_p.dim(0), k = p.classes.dim(1);
  const std::vector<float> all = to_floats(p.log_p);
  std::vector<float> listed, others;
  for (int64_t i = 0; i < std::ssize(all); ++i)
    (i % (k + 1) < k ? listed : others).push_back(std::max(all[static_cast<size_t>(i)], kLeast));
  return {constant_of(x, listed, {R, k}), k < x.dim(1) ? constant_of(x, others, {R, 1}) : Tensor()};
}

// The logarithms of softmax(x).   x [R, V], classes i32 [R, k]
LogProbabilities of_student(const Tensor& x, const Tensor& classes) {
  constexpr float kLeast = 1e-7f;  // of the other classes, as a difference from 1
  const int64_t R = x.dim(0), k = classes.dim(1);
  const HostValues<int32_t> all(classes);
  const Tensor first = tensor_from<int32_t>({R}, [&](int64_t r) { return all[r * k]; });
  // The logarithm of the sum over a row is x - log softmax(x) of any class.
  const Tensor log_sum =
      subtract(pick(x, first.view({R, 1})), log_probability(x, first).view({R, 1}));
  const Tensor listed = subtract(pick(x, classes), in_each_class(log_sum, k));
  if (k == x.dim(1)) return {listed, {}};
  const Tensor rest = shift(scale(sums_over_classes(exp(listed)), -1), 1);
  return {listed, log(clip(rest, kLeast, 1))};
}

// Returns the sum over the classes of each row.   p, q [R, C] -> [R, 1]
Tensor divergences(const Tensor& log_p, const Tensor& log_q, double beta) {
  const auto difference = [](const Tensor& a, const Tensor& b) {
    return multiply(exp(a), subtract(a, b));
  };
  if (beta == 0) return sums_over_classes(difference(log_p, log_q));
  if (beta == 1) return sums_over_classes(difference(log_q, log_p));
  const auto share = static_cast<float>(beta), rest = static_cast<float>(1 - beta);
  const Tensor a = shift(log_q, static_cast<float>(math::log(1 - beta))),
               b = shift(log_p, static_cast<float>(math::log(beta))),
               log_m = subtract(a, log_sigmoid(subtract(a, b)));  // log(exp(a) + exp(b))
  return sums_over_classes(
      add(scale(difference(log_p, log_m), share), scale(difference(log_q, log_m), rest)));
}

// Adds the rows of each unit first, then the units by their tree.   x [R, 1] -> f64 [1]
Tensor sum_of_units(const Tensor& x) {
  const int64_t R = x.size();
  const Units units = row_units().of(R);
  std::vector<double> sums;
  for (int64_t unit = 0; unit < units.count; ++unit) {
    const int64_t begin = units.start(unit, R), end = units.start(unit + 1, R);
    sums.push_back(kernels(x).sum(x.rows(begin, end), end - begin));
  }
  return record(
      full({1}, tree_sum(sums), DType::f64), {x},
      [shape = x.shape(), type = x.dtype(), &device = x.device(), x = Saved::slot(x)](
          const Tensor& dy, Gradients& d) { d.pass(x, full(shape, number_of(dy), type, device)); });
}

}  // namespace

Tensor generalised_divergence(const Tensor& logits, const TopProbabilities& p,
                              const DivergenceOptions& options) {
  const int64_t R = logits.dim(0), k = p.classes.dim(1);
  check(logits.rank() == 2 && p.classes.dim(0) == R && p.log_p.shape() == Shape{R, k + 1},
        "generalised_divergence: logits are {}, classes {}, log_p {}; expected [R, V], [R, k] and "
        "[R, k + 1]",
        logits.shape(), p.classes.shape(), p.log_p.shape());
  const HostValues<int32_t> classes(p.classes);
  std::vector<float> counted(static_cast<size_t>(R), 1);
  for (int64_t r = 0; r < R; ++r)
    if (classes[r * k] < 0) counted[static_cast<size_t>(r)] = 0;
  const Tensor known =
      tensor_from<int32_t>({R, k}, [&](int64_t i) { return std::max(classes[i], int32_t{0}); });

  const Tensor x = options.temperature == 1
                       ? logits
                       : scale(logits, static_cast<float>(1 / options.temperature));
  const LogProbabilities teacher = of_teacher(p, x), student = of_student(x, known);
  Tensor of_rows = divergences(teacher.listed, student.listed, options.beta);
  if (student.others)
    of_rows = add(of_rows, divergences(teacher.others, student.others, options.beta));
  return sum_of_units(multiply(of_rows, constant_of(of_rows, counted, {R, 1})));
}

uint64_t divergence_bytes(int64_t rows, int64_t vocabulary, int64_t classes) {
  constexpr int64_t kTensors = 32;  // of the listed classes, with their gradients
  return static_cast<uint64_t>(rows * (2 * vocabulary + kTensors * (classes + 1))) * sizeof(float);
}

}  // namespace fovea::train
