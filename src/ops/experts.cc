#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/threads.h"
#include "ops/ops.h"
#include "ops/working.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// softmax of each row, in double: a router has few columns.   [R, E] -> R * E
std::vector<double> softmax(const Tensor& logits) {
  const Rows r = rows_of(logits);
  std::vector<double> p(static_cast<size_t>(r.count * r.width));
  const Tensor exact = convert(logits, DType::f64);
  for (int64_t row = 0; row < r.count; ++row) {
    const double* from = exact.data_as<double>() + row * r.width;
    double* to = p.data() + row * r.width;
    const double most = *std::max_element(from, from + r.width);
    double sum = 0;
    for (int64_t e = 0; e < r.width; ++e) sum += to[e] = std::exp(from[e] - most);
    for (int64_t e = 0; e < r.width; ++e) to[e] /= sum;
  }
  return p;
}

// dlogits of a softmax, from dp [E]: p * (dp - sum p dp)
void softmax_backward(double* dlogits, const double* p, const double* dp, int64_t width) {
  double mean = 0;
  for (int64_t e = 0; e < width; ++e) mean += p[e] * dp[e];
  for (int64_t e = 0; e < width; ++e) dlogits[e] = p[e] * (dp[e] - mean);
}

Tensor as_tensor(const std::vector<double>& values, const Shape& shape) {
  const Tensor y = empty(shape, DType::f64);
  std::copy(values.begin(), values.end(), y.data_as<double>());
  return y;
}

}  // namespace

Routing route(const Tensor& logits, int64_t k, bool normalise) {
  const Rows r = rows_of(logits);
  check(logits.rank() == 2 && k >= 1 && k <= r.width, "route: {} of experts {}; expected 1 to {}", k,
        logits.shape(), r.width);
  const auto p = softmax(logits);
  const Tensor experts = empty({r.count, k}, DType::i32);
  std::vector<double> chosen(static_cast<size_t>(r.count * k));
  std::vector<int32_t> order(static_cast<size_t>(r.width));
  for (int64_t row = 0; row < r.count; ++row) {
    const double* weights = p.data() + row * r.width;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int32_t a, int32_t b) {
      return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
    });
    std::copy_n(order.begin(), k, experts.data_as<int32_t>() + row * k);
    double sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += weights[order[static_cast<size_t>(j)]];
    for (int64_t j = 0; j < k; ++j)
      chosen[static_cast<size_t>(row * k + j)] =
          weights[order[static_cast<size_t>(j)]] / (normalise ? sum : 1);
  }
  const Tensor weights = convert(as_tensor(chosen, {r.count, k}), working_type(logits));
  return {record(weights, {logits},
                 [=, x = Saved::slot(logits)](const Tensor& dy, Gradients& d) {
                   const Tensor upstream = convert(dy, DType::f64);
                   std::vector<double> dp(static_cast<size_t>(r.width)), dlogits(p.size());
                   for (int64_t row = 0; row < r.count; ++row) {
                     // w = p / sum p over the chosen: dp = (dw - sum w dw) / sum p, or dw alone
                     std::fill(dp.begin(), dp.end(), 0.0);
                     const double* dw = upstream.data_as<double>() + row * k;
                     const double* w = chosen.data() + row * k;
                     const int32_t* id = experts.data_as<int32_t>() + row * k;
                     double mean = 0, sum = 0;
                     for (int64_t j = 0; j < k; ++j) {
                       mean += w[j] * dw[j];
                       sum += p[static_cast<size_t>(row * r.width + id[j])];
                     }
                     for (int64_t j = 0; j < k; ++j)
                       dp[static_cast<size_t>(id[j])] = normalise ? (dw[j] - mean) / sum : dw[j];
                     softmax_backward(dlogits.data() + row * r.width, p.data() + row * r.width,
                                      dp.data(), r.width);
                   }
                   deliver(d[x], convert(as_tensor(dlogits, {r.count, r.width}),
                                         working_type(dy)));
                 }),
          experts};
}

Groups group_by_expert(const Tensor& experts, int64_t expert_count) {
  const int64_t R = experts.dim(0), k = experts.dim(1);
  Groups groups{empty({R * k}, DType::i32), empty({R, k}, DType::i32), {}};
  groups.counts.assign(static_cast<size_t>(expert_count), 0);
  const int32_t* id = experts.data_as<int32_t>();
  for (int64_t i = 0; i < R * k; ++i) ++groups.counts[static_cast<size_t>(id[i])];
  std::vector<int64_t> next(groups.counts.size());
  std::exclusive_scan(groups.counts.begin(), groups.counts.end(), next.begin(), int64_t{0});
  for (int64_t i = 0; i < R * k; ++i) {
    const int64_t place = next[static_cast<size_t>(id[i])]++;
    groups.rows.data_as<int32_t>()[place] = static_cast<int32_t>(i / k);
    groups.places.data_as<int32_t>()[i] = static_cast<int32_t>(place);
  }
  return groups;
}

Tensor balance_loss(const Tensor& logits, const Tensor& experts, const Tensor& valid) {
  const Rows r = rows_of(logits);
  const int64_t k = experts.dim(1);
  const auto p = softmax(logits);
  const auto counts = [&](int64_t row) { return !valid || valid.data_as<int32_t>()[row] != 0; };
  std::vector<double> share(static_cast<size_t>(r.width)), mean(share);
  double rows = 0;
  for (int64_t row = 0; row < r.count; ++row) {
    if (!counts(row)) continue;
    ++rows;
    for (int64_t j = 0; j < k; ++j)
      ++share[static_cast<size_t>(experts.data_as<int32_t>()[row * k + j])];
    for (int64_t e = 0; e < r.width; ++e)
      mean[static_cast<size_t>(e)] += p[static_cast<size_t>(row * r.width + e)];
  }
  rows = std::max(rows, 1.0);
  double loss = 0;
  for (size_t e = 0; e < share.size(); ++e) loss += share[e] / rows * mean[e] / rows;
  const double factor = static_cast<double>(r.width) / rows / rows;
  Tensor y = full({1}, loss * static_cast<double>(r.width), working_type(logits));
  return record(y, {logits}, [=, x = Saved::slot(logits)](const Tensor& dy, Gradients& d) {
    const double upstream = *convert(dy, DType::f64).data_as<double>();
    std::vector<double> dp(share.size()), dlogits(p.size());
    for (size_t e = 0; e < share.size(); ++e) dp[e] = upstream * factor * share[e];
    for (int64_t row = 0; row < r.count; ++row)
      if (!valid || valid.data_as<int32_t>()[row] != 0)
        softmax_backward(dlogits.data() + row * r.width, p.data() + row * r.width, dp.data(),
                         r.width);
    deliver(d[x], convert(as_tensor(dlogits, {r.count, r.width}), working_type(dy)));
  });
}

}  // namespace fovea
