#include "base/threads.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <vector>

#include "base/cgroup.h"
#include "base/error.h"

namespace fovea {
namespace {

class ThreadsTest : public testing::Test {
 protected:
  ~ThreadsTest() override { set_threads(before_); }
  const int before_ = thread_count();
};

TEST_F(ThreadsTest, CountIsPositiveAndCanBeSet) {
  EXPECT_GE(before_, 1);
  set_threads(3);
  EXPECT_EQ(thread_count(), 3);
}

TEST_F(ThreadsTest, RefusesZeroThreads) {
  try {
    set_threads(0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument);
    EXPECT_STREQ(error.what(), "threads: 0 is too few; expected at least 1");
  }
}

TEST_F(ThreadsTest, ParallelForCoversEachIndexOnce) {
  for (int threads : {1, 2, 5}) {
    set_threads(threads);
    for (int64_t count : {0, 1, 2, 7, 64, 1001}) {
      std::vector<int> seen(static_cast<size_t>(count));
      parallel_for(count, 3, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      });
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << threads << " threads, " << count;
    }
  }
}

TEST_F(ThreadsTest, ParallelForKeepsSmallWorkOnOneThread) {
  set_threads(4);
  std::atomic<int> calls = 0;
  parallel_for(100, 100, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST_F(ThreadsTest, ParallelTasksRunsEachTaskOnce) {
  set_threads(4);
  std::vector<int> seen(100);
  parallel_tasks(100, [&](int64_t i) { ++seen[static_cast<size_t>(i)]; });
  EXPECT_EQ(seen, std::vector<int>(100, 1));
}

class CgroupTest : public testing::Test {
 protected:
  CgroupTest() { std::filesystem::create_directories(root_); }
  ~CgroupTest() override { std::filesystem::remove_all(root_); }
  void write(const std::filesystem::path& name, const std::string& text) {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  int64_t limit() const { return cgroup_cpu_limit(root_ / "membership", root_ / "mount"); }

  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() / ("fovea-cgroup-test-" + std::to_string(getpid()));
};

TEST_F(CgroupTest, NoFilesMeanNoLimit) { EXPECT_EQ(limit(), 0); }

TEST_F(CgroupTest, Version2UsesTheLowestLimitOfAGroupAndItsParents) {
  write("membership", "0::/slice/job\n");
  write("mount/slice/job/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0);
  write("mount/slice/job/cpu.max", "350000 100000\n");
  EXPECT_EQ(limit(), 4);  // 3.5 CPUs, rounded up
  write("mount/slice/cpu.max", "200000 100000\n");
  EXPECT_EQ(limit(), 2);
}

TEST_F(CgroupTest, Version2InAContainerReadsTheMountItself) {
  write("membership", "0::/host/path/that/is/not/here\n");
  write("mount/cpu.max", "100000 100000\n");
  EXPECT_EQ(limit(), 1);
}

TEST_F(CgroupTest, Version1ReadsQuotaAndPeriod) {
  write("membership", "5:memory:/job\n4:cpu,cpuacct:/job\n");
  write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 0);
  write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(limit(), 2);
}

TEST_F(CgroupTest, InvalidFilesMeanNoLimit) {
  write("membership", "nonsense\n0::/job\n");
  write("mount/job/cpu.max", "many few\n");
  EXPECT_EQ(limit(), 0);
  write("mount/job/cpu.max", "100000 0\n");
  EXPECT_EQ(limit(), 0);
}

}  // namespace
}  // namespace fovea
