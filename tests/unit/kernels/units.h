#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/kernels.h"

namespace fovea::test {

// Returns the sum of `size` numbers (a power of two) from `begin` in the order of a balanced tree:
// the sum of each half is computed recursively. Missing numbers add nothing.
inline std::optional<float> sum_of_node(const std::vector<std::optional<float>>& numbers,
                                        size_t begin, size_t size) {
  if (begin >= numbers.size()) return std::nullopt;
  if (size == 1) return numbers[begin];
  const auto left = sum_of_node(numbers, begin, size / 2),
             right = sum_of_node(numbers, begin + size / 2, size / 2);
  if (left && right) return *left + *right;
  return left ? left : right;
}
inline float tree_sum(const std::vector<std::optional<float>>& numbers) {
  return sum_of_node(numbers, 0, std::bit_ceil(numbers.size())).value_or(0);
}

// A division of rows into `count` units, which are equal unless `starts` is given. units() refers
// to `starts`.
struct Divided {
  std::vector<int64_t> starts;
  int64_t count = 1;
  Units units() const { return {count, starts.empty() ? nullptr : starts.data()}; }
};
inline std::vector<Divided> divisions(int64_t rows) {
  std::vector<Divided> all = {{}};
  for (const int64_t count : {2, 3, 5, 8})
    if (rows % count == 0) all.push_back({{}, count});
  for (const int64_t count : {2, 7}) {
    Divided divided{{0}, count};
    for (int64_t unit = 1; unit < count; ++unit)
      divided.starts.push_back(unit == 3 ? divided.starts.back()
                                         : std::min(rows, divided.starts.back() + 1 + rows / 4));
    divided.starts.push_back(rows);
    all.push_back(divided);
  }
  return all;
}

}  // namespace fovea::test
