#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "base/float_mode.h"
#include "base/team.h"
#include "fovea/core/machine.h"

namespace fovea {

// A limit well above the number of cores of common machines, to catch mistakes.
constexpr int kMostThreads = 1024;

// Keeps the first exception of a region, since an exception that leaves a thread ends the process.
// Work that has not begun by then is left out.
class FirstException {
 public:
  template <class Work>
  void guard(Work&& work) noexcept {
    if (taken_.test(std::memory_order_relaxed)) return;
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

// The team of compute threads of the process.
Team& team();

// Calls body(index) for each index in [0, count). Which thread calls it must not affect the result:
// a body writes only the elements of its own indices. Threads that have finished their indices take
// others, so indices may be of unequal length. Every thread computes in the caller's float mode.
// After an exception, indices that have not begun are left out, and the exception is rethrown to
// the caller. Nested calls run on the calling thread.
template <class Body>
void parallel_tasks(int64_t count, Body&& body) {
  struct Region {
    Body& body;
    FloatModeBits mode;
    FirstException exception;
  } region{body, FloatMode::current(), {}};
  team().run(
      count, thread_count(),
      [](void* context, int64_t index) {
        auto& shared = *static_cast<Region*>(context);
        shared.exception.guard([&] {
          const FloatMode same(shared.mode);
          shared.body(index);
        });
      },
      &region);
  region.exception.rethrow();
}

// Calls body(begin, end) on disjoint pieces that cover [0, count), like parallel_tasks. `grain` is
// the number of indices that justifies one more thread: there are at most count / grain pieces,
// rounded up, and at most one for each thread.
template <class Body>
void parallel_for(int64_t count, int64_t grain, Body&& body) {
  const int64_t pieces =
      std::min<int64_t>(thread_count(), grain > 0 ? (count + grain - 1) / grain : count);
  if (pieces <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  parallel_tasks(
      pieces, [&](int64_t piece) { body(count * piece / pieces, count * (piece + 1) / pieces); });
}

}  // namespace fovea
