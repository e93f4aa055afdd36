// Untrusted files and folders from which too much was read.

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/files.h"
#include "base/files_below.h"
#include "base/json.h"
#include "data/corpus.h"
#include "embed/sentence_model.h"
#include "support/expect_error.h"
#include "support/golden_folder.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using Paths = std::vector<std::filesystem::path>;

// A link in an untrusted folder made search --build and train read any file of the user: links that
// lead out of the folder were followed. Such links are now excluded.
TEST(UntrustedFolders, ExcludeLinksThatLeadOut) {
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
  // The given folder may itself be a link.
  ASSERT_EQ(symlink("in", (folder / "name").c_str()), 0);
  EXPECT_EQ(files_below(folder / "name").files.size(), 3u);
}

// Training text excludes such links as well. A link that the user names is followed.
TEST(UntrustedFolders, AddNoLinkedFilesToACorpus) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& path) {
    std::string text;
    train::Corpus({path}).read([&](const train::Corpus::Piece& piece) { text += piece.text; });
    return text;
  };
  make_directories(folder / "d");
  make_directories(folder / "e");
  write_file_atomically(folder / "secret.txt", "secret");
  write_file_atomically(folder / "d/a.txt", "1");
  for (const char* name : {"d/b.txt", "e/b.txt"})
    ASSERT_EQ(symlink("../secret.txt", (folder / name).c_str()), 0);
  EXPECT_EQ(read(folder / "d"), "1");
  EXPECT_EQ(train::Corpus({folder / "d"}).links_out(), (Paths{folder / "d/b.txt"}));
  EXPECT_EQ(read(folder / "d/b.txt"), "secret");
  expect_error(ErrorKind::BadFile, {"/e: ", "not links that lead out of the folder"},
               [&] { train::Corpus({folder / "e"}); });
}

// A model whose header had 100 MB of spaces took 350 MB: the parser keeps all white space before a
// value, to quote it in error messages. Long white space is now skipped before parsing.
TEST(JsonFiles, SkipsLongWhiteSpace) {
  const std::string blanks(100'000, ' '), text = "\\\"" + blanks + "\\";
  const nlohmann::json value = {{"a", {1, text}}, {"b", blanks}};
  const std::string written = value.dump();
  std::string spread;
  bool in_string = false, escaped = false;
  for (const char c : written) {
    spread += c;
    in_string = in_string ? escaped || c != '"' : c == '"';
    escaped = in_string && !escaped && c == '\\';
    if (!in_string && c != '1') spread += blanks;
  }
  EXPECT_EQ(parse_json(blanks + spread, "f"), value);
  expect_error(ErrorKind::BadFile, {"(byte 100001, line 1, column 100002)"},
               [&] { parse_json(blanks + "?", "f"); });
}

// A module's path with a NUL byte gave an error without a reason, since system calls end the path
// there. The error now names the NUL byte.
TEST(UntrustedFolders, WithANulByteInAPathAreRefused) {
  const GoldenFolder folder("sentence_model");
  nlohmann::json modules = folder.read("modules.json");
  modules[1]["path"] = std::string("1_Pooling\0x", 11);
  folder.write("modules.json", modules);
  expect_error(ErrorKind::BadFile, {"modules.json", "path"},
               [&] { infer::SentenceModel::open(folder.path(), model::Weights::mapped); });
}

}  // namespace
}  // namespace fovea
