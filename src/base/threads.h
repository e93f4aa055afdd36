#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include <omp.h>

#include "base/float_mode.h"

namespace fovea {

// A limit well above the number of cores of common machines, to catch mistakes.
constexpr int kMostThreads = 1024;

// Returns the size of the compute team: the count that was set, otherwise OMP_NUM_THREADS,
// otherwise the number of CPUs that the CPU affinity and the cgroup's quota allow; at most
// kMostThreads, and at most the number of threads that the process can start.
int thread_count();
// Throws InvalidArgument if `count` is less than 1.
void set_thread_count(int count);

// Keeps the first exception of a parallel region, since an exception that leaves the region ends
// the process.
class FirstException {
 public:
  template <class Work>
  void guard(Work&& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!taken_.test_and_set()) first_ = std::current_exception();
    }
  }
  // Call it after the region, when all threads have finished.
  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::atomic_flag taken_;
  std::exception_ptr first_;
};

// Calls body(begin, end) on disjoint pieces that cover [0, count). Which thread gets which piece
// must not affect the result: a body writes only the elements of its own indices. `grain` is the
// number of indices that justifies one more thread: there are at most count / grain pieces, rounded
// up. Every thread computes in the caller's float mode, not in the mode in which the team was
// created. The first exception of a body is rethrown to the caller after all pieces have ended.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  const int64_t pieces =
      std::min<int64_t>(thread_count(), grain > 0 ? (count + grain - 1) / grain : count);
  if (pieces <= 1 || omp_in_parallel()) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  const FloatModeBits mode = FloatMode::current();
  FirstException exception;
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(pieces))
  for (int64_t piece = 0; piece < pieces; ++piece) {
    exception.guard([&] {
      const FloatMode same(mode);
      body(count * piece / pieces, count * (piece + 1) / pieces);
    });
  }
  exception.rethrow();
}

// Calls body(index) for each index in [0, count); an idle thread takes the next index. Suitable for
// tasks of unequal length.
template <class Body>
void parallel_tasks(int64_t count, Body&& body) {
  const int team = static_cast<int>(std::min<int64_t>(thread_count(), count));
  if (team <= 1 || omp_in_parallel()) {
    for (int64_t index = 0; index < count; ++index) body(index);
    return;
  }
  const FloatModeBits mode = FloatMode::current();
  FirstException exception;
#pragma omp parallel for schedule(dynamic, 1) num_threads(team)
  for (int64_t index = 0; index < count; ++index) {
    exception.guard([&] {
      const FloatMode same(mode);
      body(index);
    });
  }
  exception.rethrow();
}

}  // namespace fovea
