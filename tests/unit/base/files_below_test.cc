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

// Regression: links in an untrusted folder were followed out of it, so that other files of the user
// were read, indexed and shown.
TEST(FilesBelow, ExcludeLinksThatLeadOut) {
  const TemporaryFolder folder;
  make_directories(folder / "in/below");
  make_directories(folder / "inner");
  write_file_atomically(folder / "secret.txt", "secret");
  write_file_atomically(folder / "inner/secret.txt", "a folder whose name has the same beginning");
  write_file_atomically(folder / "in/below/a.txt", "text");
  const auto link = [&](const std::string& target, const std::string& name) {
    ASSERT_EQ(symlink(target.c_str(), (folder / ("in/" + name)).c_str()), 0);
  };
  link("below/a.txt", "good.txt");
  link("good.txt", "to_a_link.txt");
  link("../secret.txt", "out.txt");
  link(folder / "secret.txt", "absolute.txt");
  link("below/../../inner/secret.txt", "around.txt");
  link("nothing", "lost.txt");
  link("circle.txt", "circle.txt");
  link("..", "up");
  link("below", "same");
  link(".", "below/again");
  const FilesBelow found = files_below(folder / "in");
  EXPECT_EQ(found.files, (Paths{folder / "in/below/a.txt", folder / "in/good.txt",
                                folder / "in/to_a_link.txt"}));
  EXPECT_EQ(found.links_out,
            (Paths{folder / "in/absolute.txt", folder / "in/around.txt", folder / "in/circle.txt",
                   folder / "in/lost.txt", folder / "in/out.txt", folder / "in/up"}));
  // The folder itself may be a link.
  ASSERT_EQ(symlink("in", (folder / "name").c_str()), 0);
  EXPECT_EQ(files_below(folder / "name").files.size(), 3u);
}

}  // namespace
}  // namespace fovea
