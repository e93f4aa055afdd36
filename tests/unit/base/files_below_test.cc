#include "base/files_below.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using Paths = std::vector<std::filesystem::path>;

TEST(FilesBelow, AreSortedWithoutHiddenOnes) {
  const TemporaryFolder folder;
  make_directories(folder / "b/.git");
  for (const char* name : {"c.md", "b/a.txt", "b/.git/x", ".hidden", "a.txt"})
    write_file_atomically(folder / name, "text");
  ASSERT_EQ(mkfifo((folder / "pipe.txt").c_str(), 0600), 0);
  const FilesBelow found = files_below(folder.path());
  EXPECT_EQ(found.files, (Paths{folder / "a.txt", folder / "b/a.txt", folder / "c.md"}));
  EXPECT_TRUE(found.links_out.empty());
  expect_error(ErrorKind::BadFile, {"none"}, [&] { files_below(folder / "none"); });
}

}  // namespace
}  // namespace fovea
