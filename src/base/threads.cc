#include "base/threads.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/cgroup.h"
#include "base/error.h"

namespace fovea {
namespace {

// The first number of OMP_NUM_THREADS ("4" or "4,2"); 0 where it holds none, which the OpenMP
// runtime itself reports.
int64_t asked_for() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

// The CPUs that the scheduler may use for this process; the set is grown until the kernel's fits.
int64_t allowed_cpus() {
  for (int most = 1024; most <= (1 << 20); most *= 2) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(most);
    const int count = sched_getaffinity(0, bytes, set) == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return std::max(1u, std::thread::hardware_concurrency());
}

int default_count() {
  constexpr int64_t kMost = 4096;  // no machine is larger; a typing error may be
  if (const int64_t asked = asked_for(); asked > 0) return static_cast<int>(std::min(asked, kMost));
  const int64_t limit = cgroup_cpu_limit();
  const int64_t cpus = allowed_cpus();
  return static_cast<int>(std::min(limit > 0 ? std::min(limit, cpus) : cpus, kMost));
}

std::atomic<int>& count_in_use() {
  static std::atomic<int> count = default_count();
  return count;
}

}  // namespace

int thread_count() { return count_in_use().load(std::memory_order_relaxed); }

void set_thread_count(int count) {
  check(count > 0, "threads: {} is too few; expected at least 1", count);
  count_in_use() = count;
}

}  // namespace fovea
