#pragma once

#include <algorithm>
#include <numeric>

#include "fovea/circuits.h"

namespace fovea {

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

}  // namespace fovea
