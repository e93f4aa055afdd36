#include "jobs/line_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "fovea/core/error.h"
#include "support/temporary_folder.h"

namespace fovea::jobs {
namespace {

class LineJobs : public testing::Test {
 protected:
  void SetUp() override {
    job_.files = {folder_.path() + "/in.txt"};
    job_.out = folder_.path() + "/out.txt";
    job_.key = {{"a", 1}};
    job_.block_lines = 2;
    job_.at_once = 4;
    std::ofstream in(job_.files[0]);
    for (int i = 0; i < 41; ++i) in << i << "\n";
  }
  std::string output() const {
    std::ifstream file(job_.out);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  static BlockResult copied(const LineBlock& block) {
    BlockResult result;
    for (size_t i = 0; i < block.lines.size(); ++i) {
      result.bytes += block.lines[i] + "\n";
      if (block.lines[i].ends_with('7') && result.errors++ == 0)
        result.first_error = block.name_of(i);
    }
    return result;
  }
  std::string input() const {
    std::string all;
    for (int i = 0; i < 41; ++i) all += std::to_string(i) + "\n";
    return all;
  }

  TemporaryFolder folder_;
  LineJob job_;
};

TEST_F(LineJobs, ComputesBlocksAtOnceAndKeepsTheirOrder) {
  std::atomic<int> running = 0, most = 0;
  std::vector<uint64_t> bytes;
  job_.report = [&](const JobProgress&, uint64_t count) { bytes.push_back(count); };
  const auto done = run_lines(job_, [&](const LineBlock& block) {
    const int now = ++running;
    if (now > most) most = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(block.first % 4 == 0 ? 20 : 2));
    --running;
    return copied(block);
  });
  ASSERT_TRUE(done);
  EXPECT_EQ(output(), input());
  EXPECT_EQ(done->lines, 41);
  EXPECT_EQ(done->errors, 4);
  EXPECT_EQ(done->first_error, job_.files[0] + ": line 8");
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
  EXPECT_EQ(bytes.size(), 22u);
  EXPECT_EQ(bytes.front(), 0u);
  EXPECT_EQ(bytes.back(), input().size());
}

TEST_F(LineJobs, ResumeAfterAnError) {
  const auto failing = [&](const LineBlock& block) {
    if (block.first == 20) throw Error(ErrorKind::Failed, "broken");
    return copied(block);
  };
  EXPECT_THROW(run_lines(job_, failing), Error);
  job_.at_once = 1;
  job_.block_lines = 3;
  size_t least = 41;
  const auto done = run_lines(job_, [&](const LineBlock& block) {
    least = std::min(least, block.first);
    return copied(block);
  });
  ASSERT_TRUE(done);
  EXPECT_GT(least, 0u);
  EXPECT_LE(least, 20u);
  EXPECT_EQ(done->errors, 4);
  EXPECT_EQ(output(), input());
}

}  // namespace
}  // namespace fovea::jobs
