#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace fovea {

// Returns the median time in seconds of `runs` calls of run(i), after `warmup` calls that are not
// measured.
template <class Run>
double median_seconds(const Run& run, int64_t runs, int64_t warmup = 1) {
  std::vector<double> seconds;
  for (int64_t i = 0; i < warmup + runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run(i);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (i >= warmup) seconds.push_back(passed.count());
  }
  const int64_t middle = runs / 2;
  std::nth_element(seconds.begin(), seconds.begin() + middle, seconds.end());
  return seconds[static_cast<size_t>(middle)];
}

}  // namespace fovea
