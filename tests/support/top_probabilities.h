#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/ops.h"

namespace fovea::test {

// Returns softmax(logits / temperature) [V] in double.
inline std::vector<double> softmax_of(const std::vector<float>& logits, double temperature) {
  const double most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p;
  for (const float logit : logits) p.push_back(std::exp((logit - most) / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& each : p) each /= sum;
  return p;
}

// Returns the k largest probabilities of softmax(logits / temperature), and that of the rest.
// logits [R, V] -> f64
inline TopProbabilities top_probabilities(const Tensor& logits, int64_t k, double temperature) {
  const int64_t R = logits.dim(0), V = logits.dim(1);
  const std::vector<float> values = to_floats(logits);
  const Tensor classes = empty({R, k}, DType::i32), log_p = empty({R, k + 1}, DType::f64);
  for (int64_t r = 0; r < R; ++r) {
    const std::vector<double> p =
        softmax_of({values.begin() + r * V, values.begin() + (r + 1) * V}, temperature);
    std::vector<int32_t> order(static_cast<size_t>(V));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)];
    });
    std::sort(order.begin(), order.begin() + k);
    double rest = 0;
    for (int64_t j = 0; j < V; ++j) {
      const double of_class = p[static_cast<size_t>(order[static_cast<size_t>(j)])];
      if (j >= k) {
        rest += of_class;
        continue;
      }
      classes.data_as<int32_t>()[r * k + j] = order[static_cast<size_t>(j)];
      log_p.data_as<double>()[r * (k + 1) + j] = std::log(of_class);
    }
    log_p.data_as<double>()[r * (k + 1) + k] = std::log(rest);  // -infinity for 0
  }
  return {classes, log_p};
}

// Returns p as the ops take it with logits of this dtype.
inline TopProbabilities for_dtype(const TopProbabilities& p, DType dtype) {
  return {p.classes, dtype == DType::f64 ? p.log_p : convert(p.log_p, DType::f32)};
}

// Makes the loss ignore a row.
inline void ignore_row(const TopProbabilities& p, int64_t row) {
  std::fill_n(p.classes.data_as<int32_t>() + row * p.classes.dim(1), p.classes.dim(1), -1);
}

}  // namespace fovea::test
