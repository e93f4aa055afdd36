#include "base/threads.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/cgroup.h"
#include "base/error.h"

namespace fovea {
namespace {

// Returns the first number of OMP_NUM_THREADS ("4" or "4,2"); 0 if it is unset or not a number.
int64_t requested_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
}

// Returns the number of CPUs that the scheduler may use for this process; `set` grows until the
// kernel's set fits.
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

int64_t default_count() {
  if (const int64_t requested = requested_threads(); requested > 0) return requested;
  const int64_t limit = cgroup_cpu_limit();
  const int64_t cpus = allowed_cpus();
  return limit > 0 ? std::min(limit, cpus) : cpus;
}

// Returns the number of thread stacks that fit into a quarter of the remaining address space;
// kMostThreads if the address space has no limit.
int64_t affordable_threads() {
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return kMostThreads;
  mallopt(M_ARENA_MAX, 1);  // each additional arena of malloc takes 64 MB of address space
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const uint64_t used = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  pthread_attr_t attributes;
  size_t stack = size_t{8} << 20;
  if (pthread_getattr_default_np(&attributes) == 0) {
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
  }
  const uint64_t room = space.rlim_cur > used ? space.rlim_cur - used : 0;
  return static_cast<int64_t>(room / 4 / std::max<size_t>(stack, 1));
}

// The team and its size. The team exists until the process ends.
struct Process {
  std::atomic<Team*> team = new Team;
  std::atomic<int> count = 0;

  Process() {
    count = start(default_count());
    // The child of fork() has none of the team's threads, so it computes alone with a new team.
    pthread_atfork(nullptr, nullptr, [] {
      process().team = new Team;
      process().count = 1;
    });
  }
  int start(int64_t threads) {
    const int64_t most = std::min({threads, int64_t{kMostThreads}, affordable_threads() + 1});
    return team.load()->grow(static_cast<int>(most));
  }
  static Process& process() {
    static Process& process = *new Process;  // not destroyed, since threads may compute at exit
    return process;
  }
};

}  // namespace

Team& team() { return *Process::process().team.load(std::memory_order_relaxed); }

int thread_count() { return Process::process().count.load(std::memory_order_relaxed); }

void set_threads(int count) {
  check(count > 0, "threads: {} is too few; expected at least 1", count);
  Process& process = Process::process();
  process.count = process.start(count);
}

}  // namespace fovea
