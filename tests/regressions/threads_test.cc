#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <new>

#include "base/error.h"

namespace fovea {
namespace {

class ThreadTeam : public testing::Test {
 protected:
  ~ThreadTeam() override { set_threads(before_); }
  const int before_ = thread_count();
};

// train under `prlimit --as` ended with SIGABRT: when a worker thread could not allocate memory,
// the exception left a parallel region, which ends the process. Exceptions now reach the caller.
TEST_F(ThreadTeam, RethrowsExceptionsInTheCaller) {
  for (const int threads : {1, 4}) {
    set_threads(threads);
    EXPECT_THROW(parallel_for(100, 1, [](int64_t, int64_t) { throw std::bad_alloc(); }),
                 std::bad_alloc);
    std::atomic<int> others = 0;
    const auto one_fails = [&](int64_t index) {
      if (index == 0) throw Error(ErrorKind::Failed, "zero");
      ++others;
    };
    EXPECT_THROW(parallel_tasks(100, one_fails), Error);
    EXPECT_LE(others, threads == 1 ? 0 : 99);  // work that has not begun is left out
  }
}

// With OMP_NUM_THREADS=99999, train ended with a segmentation fault: OpenMP's runtime, which
// started the threads then, cannot start so many. The number of threads is now limited.
TEST_F(ThreadTeam, CountIsLimited) {
  set_threads(kMostThreads + 1);
  EXPECT_LE(thread_count(), kMostThreads);
  EXPECT_GE(thread_count(), 1);
}

}  // namespace
}  // namespace fovea
