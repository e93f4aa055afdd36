#include "base/bounded_program.h"

#include <chrono>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

class BoundedProgram : public testing::Test {
 protected:
  std::string run(const std::string& script, const ProgramLimits& limits = {}) const {
    return run_bounded({"/bin/sh", "-c", script}, input_, limits);
  }
  void fails(const char* why, const std::string& script, const ProgramLimits& limits = {}) const {
    expect_error(ErrorKind::Failed, {"/bin/sh", why}, [&] { run(script, limits); });
  }
  void SetUp() override { write_file_atomically(input_, "some\0input\n"); }

  TemporaryFolder folder_;
  std::string input_ = folder_ / "a file; with $(odd) 'name'";
};

TEST_F(BoundedProgram, ReturnsTheOutput) {
  EXPECT_EQ(run("cat"), read_file(input_));
  EXPECT_EQ(run("echo error >&2; exit 0"), "");
  EXPECT_EQ(run("head -c 300000 /dev/zero").size(), 300'000u);
  EXPECT_EQ(run("echo $HOME $LC_ALL $FOVEA_SECRET"), "/nonexistent C.UTF-8\n");
}

TEST_F(BoundedProgram, FailsWithTheReason) {
  fails("ended with code 3", "exit 3");
  fails("ended by signal 15", "kill -TERM $$");
  expect_error(ErrorKind::Failed, {"/none", "cannot be started"},
               [&] { run_bounded({"/none"}, input_); });
  expect_error(ErrorKind::BadFile, {"none", "cannot be read"},
               [&] { run_bounded({"/bin/cat"}, folder_ / "none"); });
}

TEST_F(BoundedProgram, EndsAtItsLimits) {
  const auto begin = std::chrono::steady_clock::now();
  ProgramLimits limits;
  limits.seconds = 0.2;
  fails("did not end within 0.2 seconds", "sleep 30", limits);
  fails("did not end within 0.2 seconds", "exec 1>&-; sleep 30", limits);
  // Programs in the background do not keep the caller waiting once they are ended.
  EXPECT_EQ(run("echo a; sleep 30 >&- & exit 0"), "a\n");
  limits = {};
  limits.output_bytes = 1000;
  fails("wrote more than 1000 bytes", "cat /dev/zero", limits);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  expect_error(ErrorKind::Failed, {"stopped"},
               [&] { run_bounded({"/bin/sleep", "30"}, input_, {}, [] { return true; }); });
}

TEST_F(BoundedProgram, HasNoNetwork) {
  // bash opens a socket for this path.
  if (!find_program("bash")) GTEST_SKIP() << "bash is not installed";
  expect_error(ErrorKind::Failed, {"ended with code"}, [&] {
    run_bounded({*find_program("bash"), "-c", "exec 3<>/dev/udp/127.0.0.1/9"}, input_);
  });
  EXPECT_EQ(run_bounded({*find_program("bash"), "-c", "exec 3</dev/null; echo a"}, input_), "a\n");
}

TEST(FindProgram, SearchesThePath) {
  EXPECT_TRUE(find_program("sh"));
  EXPECT_FALSE(find_program("no-such-program"));
}

}  // namespace
}  // namespace fovea
