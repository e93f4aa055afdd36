// Losses of logits, and softmax.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void cross_entropy(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double most = get(logits, row), sum = 0;
    for (int64_t j = 1; j < rows.width; ++j) most = std::max(most, get(logits, row + j));
    for (int64_t j = 0; j < rows.width; ++j) sum += std::exp(get(logits, row + j) - most);
    const double log_sum = most + std::log(sum);
    put(lse, i, log_sum);
    double loss = targets[i] < 0 ? 0 : log_sum - get(logits, row + targets[i]);
    for (int64_t j = 0; smoothing > 0 && targets[i] >= 0 && j < rows.width; ++j) {
      const double above = get(logits, row + targets[i]) - get(logits, row + j);
      loss += smoothing * above / static_cast<double>(rows.width);
    }
    put(losses, i, loss);
  }
}

void cross_entropy_backward(Out dlogits, In logits, In lse, Indices targets, In factors,
                            float factor, float smoothing, Rows rows, Classes classes) {
  const double others = smoothing / static_cast<double>(classes.of(rows.width)),
               own = 1.0 - smoothing + others;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    const double row_factor = factors.data != nullptr ? factor * get(factors, i) : factor;
    for (int64_t j = 0; j < rows.width; ++j) {
      const double probability = std::exp(get(logits, row + j) - get(lse, i));
      const double gradient =
          (probability - (classes.first + j == targets[i] ? own : others)) * row_factor;
      put(dlogits, row + j, targets[i] < 0 ? 0 : gradient);
    }
  }
}

void softmax(Out y, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double most = get(x, row), sum = 0;
    for (int64_t j = 1; j < rows.width; ++j) most = std::max(most, get(x, row + j));
    for (int64_t j = 0; j < rows.width; ++j) sum += std::exp(get(x, row + j) - most);
    for (int64_t j = 0; j < rows.width; ++j)
      put(y, row + j, std::exp(get(x, row + j) - most) / sum);
  }
}

void softmax_backward(Out dx, In dy, In y, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double dot = 0;
    for (int64_t j = 0; j < rows.width; ++j) dot += get(dy, row + j) * get(y, row + j);
    for (int64_t j = 0; j < rows.width; ++j)
      put(dx, row + j, get(y, row + j) * (get(dy, row + j) - dot));
  }
}

void divide_by_sum(Out y, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double sum = kLeastSum;
    for (int64_t j = 0; j < rows.width; ++j) sum += get(x, row + j);
    for (int64_t j = 0; j < rows.width; ++j) put(y, row + j, get(x, row + j) / sum);
  }
}

void divide_by_sum_backward(Out dx, In dy, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double sum = kLeastSum, dot = 0;
    for (int64_t j = 0; j < rows.width; ++j) {
      sum += get(x, row + j);
      dot += get(dy, row + j) * get(x, row + j);
    }
    for (int64_t j = 0; j < rows.width; ++j) put(dx, row + j, (get(dy, row + j) - dot / sum) / sum);
  }
}

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// Returns the log of the sum of exp(z) over the classes of a row for which use(class) is true.
template <class Use>
double log_sum_exp(In logits, int64_t row, int64_t width, double scale, const Use& use) {
  double most = kNone, sum = 0;
  for (int64_t j = 0; j < width; ++j)
    if (use(j)) most = std::max(most, scale * get(logits, row + j));
  if (most == kNone) return kNone;
  for (int64_t j = 0; j < width; ++j)
    if (use(j)) sum += std::exp(scale * get(logits, row + j) - most);
  return most + std::log(sum);
}

// p (log p - log q), which is 0 for p = 0
double term(double log_p, double log_q) {
  return log_p == kNone ? 0 : std::exp(log_p) * (log_p - log_q);
}

}  // namespace

void kl_divergence(Out losses, Out lse, Out rest, In logits, Indices top, In log_p,
                   const TopClasses& classes, Rows rows) {
  const int64_t k = classes.count;
  const double scale = classes.scale;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int32_t* of_row = top + i * k;
    const bool ignored = of_row[0] < 0;
    double loss = 0, all = 0, others = 0;
    if (!ignored) {
      const int64_t row = i * rows.width;
      all = log_sum_exp(logits, row, rows.width, scale, [](int64_t) { return true; });
      others = log_sum_exp(logits, row, rows.width, scale, [&](int64_t j) {
        return !std::binary_search(of_row, of_row + k, static_cast<int32_t>(j));
      });
      for (int64_t j = 0; j < k; ++j)
        loss += term(get(log_p, i * (k + 1) + j), scale * get(logits, row + of_row[j]) - all);
      loss += term(get(log_p, i * (k + 1) + k), others - all);
    }
    put(losses, i, loss);
    put(lse, i, all);
    put(rest, i, others);
  }
}

void kl_divergence_backward(Out dlogits, In logits, In lse, In rest, Indices top, In log_p,
                            const TopClasses& classes, float factor, Rows rows, Classes columns) {
  const int64_t k = classes.count;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int32_t *of_row = top + i * k, *next = of_row;
    const double all = get(lse, i), others = get(rest, i);
    const double p_others = std::exp(get(log_p, i * (k + 1) + k));
    for (int64_t j = 0; j < rows.width; ++j) {
      const double z = classes.scale * get(logits, i * rows.width + j);
      const int64_t number = columns.first + j;
      while (next < of_row + k && *next < number) ++next;
      double gradient = 0;
      if (of_row[0] >= 0 && next < of_row + k && *next == number)
        gradient = std::exp(z - all) - std::exp(get(log_p, i * (k + 1) + (next - of_row)));
      else if (of_row[0] >= 0)
        gradient = std::exp(z - others) * (std::exp(others - all) - p_others);
      put(dlogits, i * rows.width + j, factor * gradient);
    }
  }
}

}  // namespace fovea::reference
