#include "base/unnamed_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

// The spectrogram of a recording was always written to /tmp.
TEST(UnnamedFile, IsInTheDirectoryOfTMPDIR) {
  TemporaryFolder folder;
  const char* const before = getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder.path().c_str(), 1);
  const int file = unnamed_file();
  const std::string link = fs::read_symlink("/proc/self/fd/" + std::to_string(file)).string();
  EXPECT_EQ(link.find(folder.path()), 0u) << link;
  EXPECT_TRUE(fs::is_empty(std::string(folder.path())));
  close(file);
  setenv("TMPDIR", (folder / "none").c_str(), 1);
  expect_error(ErrorKind::Failed, {"TMPDIR"}, [] { unnamed_file(); });
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace fovea
