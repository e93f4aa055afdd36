#include "base/team.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "base/threads.h"

namespace fovea {
namespace {

using namespace std::chrono_literals;

// Runs `work(i)` for each index on a team.
template <class Work>
void run(Team& team, int64_t count, int threads, Work work) {
  team.run(
      count, threads, [](void* context, int64_t i) { (*static_cast<Work*>(context))(i); }, &work);
}

TEST(Team, CallsEachPieceOnce) {
  Team team;
  ASSERT_EQ(team.grow(4), 4);
  for (const int threads : {1, 2, 3, 4, 9}) {
    for (const int64_t count : {0, 1, 2, 3, 7, 100, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count));
      run(team, count, threads, [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      EXPECT_TRUE(std::all_of(calls.begin(), calls.end(), [](auto& n) { return n == 1; }));
    }
  }
}

TEST(Team, ComputesManyShortRegions) {
  Team team;
  ASSERT_EQ(team.grow(3), 3);
  std::vector<int64_t> sums(3);
  for (int region = 0; region < 20000; ++region)  // visible to the next region without atomics
    run(team, 3, 3, [&](int64_t i) { sums[static_cast<size_t>(i)] += i + 1; });
  EXPECT_EQ(sums, (std::vector<int64_t>{20000, 40000, 60000}));
}

// A thread that entered a later region than the one to which it was called was not awaited: the
// caller returned while the thread still computed.
TEST(Team, WaitsForLateThreadsInRegionsOfFewerThreads) {
  Team team;
  ASSERT_EQ(team.grow(8), 8);
  for (int region = 0; region < 1000; ++region) {
    run(team, 8, 8, [](int64_t) {});
    std::vector<int> pieces(64);  // freed memory if a thread still computes
    run(team, 64, 2, [&](int64_t i) {
      for (int step = 0; step < 4000; ++step) pieces[static_cast<size_t>(i)] += step % 2;
    });
    EXPECT_EQ(pieces, std::vector<int>(64, 2000));
  }
}

TEST(Team, WakesThreadsThatSleep) {
  Team team;
  ASSERT_EQ(team.grow(2), 2);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(20ms);  // much longer than a thread spins
    std::set<std::thread::id> ids;
    std::mutex mutex;
    for (int tries = 0; tries < 1000 && ids.size() < 2; ++tries) {
      run(team, 2, 2, [&](int64_t) {
        std::this_thread::sleep_for(1ms);
        const std::lock_guard<std::mutex> lock(mutex);
        ids.insert(std::this_thread::get_id());
      });
    }
    EXPECT_EQ(ids.size(), 2u);
  }
}

TEST(Team, FreeThreadsTakePiecesOfOthers) {
  Team team;
  ASSERT_EQ(team.grow(2), 2);
  std::atomic<int> others = 0;
  run(team, 100, 2, [&](int64_t i) {
    if (i != 0) {
      ++others;
      return;
    }
    // The first piece ends only when all others have, so another thread must take them.
    const auto end = std::chrono::steady_clock::now() + 10s;
    while (others < 99 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_EQ(others, 99);
}

// Two long pieces end milliseconds apart. The caller then sent the other thread away for up to a
// second, so that batches of images were computed at half the speed.
TEST(Team, LongPiecesOfDifferentLengthKeepAllThreads) {
  Team team;
  ASSERT_EQ(team.grow(2), 2);
  constexpr int kRegions = 24;
  int together = 0;  // about 7 if threads are sent away
  for (int region = 0; region < kRegions; ++region) {
    std::set<std::thread::id> ids;
    std::mutex mutex;
    const auto caller = std::this_thread::get_id();
    run(team, 2, 2, [&](int64_t) {
      std::this_thread::sleep_for(std::this_thread::get_id() == caller ? 20ms : 28ms);
      const std::lock_guard<std::mutex> lock(mutex);
      ids.insert(std::this_thread::get_id());
    });
    together += ids.size() == 2 ? 1 : 0;
  }
  EXPECT_GE(together, kRegions / 2);
}

TEST(Team, SeveralCallersComputeAtOnce) {
  Team team;
  ASSERT_EQ(team.grow(3), 3);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums) {
    callers.emplace_back([&] {
      for (int region = 0; region < 500; ++region) {
        std::vector<int64_t> parts(17);
        run(team, 17, 3, [&](int64_t i) { parts[static_cast<size_t>(i)] = i; });
        sum += std::accumulate(parts.begin(), parts.end(), int64_t{0});
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sums, std::vector<int64_t>(4, 500 * 136));
}

TEST(Team, NestedRegionsRunOnTheCallingThread) {
  Team team;
  ASSERT_EQ(team.grow(2), 2);
  std::atomic<int> strangers = 0;
  run(team, 8, 2, [&](int64_t) {
    const auto id = std::this_thread::get_id();
    run(team, 8, 2, [&](int64_t) { strangers += std::this_thread::get_id() != id; });
  });
  EXPECT_EQ(strangers, 0);
}

// A child of fork() has only the thread that called fork(); with the parent's team it would wait
// for threads that do not exist.
TEST(Team, AChildProcessComputes) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not support threads after fork()";
#endif
  set_threads(2);
  parallel_tasks(2, [](int64_t) {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> calls = 0;
    alarm(20);
    parallel_tasks(10, [&](int64_t) { ++calls; });
    set_threads(2);
    parallel_tasks(10, [&](int64_t) { ++calls; });
    _exit(calls == 20 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

}  // namespace
}  // namespace fovea
