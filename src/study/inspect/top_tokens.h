#pragma once

#include <algorithm>
#include <numeric>

#include "fovea/study/circuits.h"
#include "tensor/host_values.h"
#include "tensor/tensor.h"

namespace fovea::study {

// Returns the `count` tokens with the largest values, in descending order; equal ones by their ids.
inline std::vector<TokenValue> top_tokens(const std::vector<float>& values, int64_t count) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto kept = std::min<int64_t>(count, std::ssize(order));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(), [&](int32_t a, int32_t b) {
    const float x = values[static_cast<size_t>(a)], y = values[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<TokenValue> top;
  for (int64_t i = 0; i < kept; ++i) {
    const int32_t id = order[static_cast<size_t>(i)];
    top.push_back({id, values[static_cast<size_t>(id)]});
  }
  return top;
}

// Returns, for each row of logits [n + 1, V] but the last, the tokens with the largest differences
// to the last row, which is the head's output for 0.
inline std::vector<std::vector<TokenValue>> raised_tokens(const Tensor& logits, int64_t count) {
  const int64_t n = logits.dim(0) - 1, V = logits.dim(1);
  const HostValues<float> z(logits);
  std::vector<std::vector<TokenValue>> raised;
  for (int64_t r = 0; r < n; ++r) {
    std::vector<float> added(static_cast<size_t>(V));
    for (int64_t v = 0; v < V; ++v) added[static_cast<size_t>(v)] = z[r * V + v] - z[n * V + v];
    raised.push_back(top_tokens(added, count));
  }
  return raised;
}

}  // namespace fovea::study
