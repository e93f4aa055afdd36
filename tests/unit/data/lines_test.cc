#include "data/lines.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

using Texts = std::vector<std::string>;

class Lines : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  TextPairs pairs(const Texts& files) const { return read_pairs(files, "pairs"); }
  TemporaryFolder folder_;
};

TEST_F(Lines, AcceptBothLineEndings) {
  EXPECT_EQ(read_lines(file("a", "one\ntwo\r\n\nfour")), (Texts{"one", "two", "", "four"}));
  EXPECT_EQ(read_lines(file("b", "one\n")), (Texts{"one"}));
  EXPECT_EQ(read_lines(file("c", "\xEF\xBB\xBFone\n\n")), (Texts{"one", ""}));
}

TEST_F(Lines, MayBeLong) {
  const std::string wide = std::string(3 << 20, 'x') + "ä";
  EXPECT_EQ(read_lines(file("a", wide + "\nb\n")), (Texts{wide, "b"}));
}

TEST_F(Lines, RefuseInvalidTextByPosition) {
  expect_error(ErrorKind::BadFile, {"bad:2:4", "not UTF-8"},
               [&] { read_lines(file("bad", "one\ntwo\xFF\n")); });
  expect_error(ErrorKind::BadFile, {"empty", "is empty"}, [&] { read_lines(file("empty", "")); });
  expect_error(ErrorKind::BadFile, {"binary", "looks binary"},
               [&] { read_lines(file("binary", std::string("a\0b", 3))); });
}

TEST_F(Lines, RefuseAFolderAndJson) {
  std::filesystem::create_directory(folder_ / "folder");
  file("folder/only.txt", "one\n");
  expect_error(ErrorKind::BadFile, {"folder: is a folder", "expected a text file"},
               [&] { read_lines(folder_ / "folder"); });
  expect_error(ErrorKind::BadFile, {"a.jsonl: is JSON", "expected a text file"},
               [&] { read_lines(file("a.jsonl", "{\"text\": \"one\"}\n")); });
}

TEST_F(Lines, AreTheObjectsOfAJsonArray) {
  const auto found = [&](const std::string& content) {
    std::string all;
    each_json_line(file("a.json", content), [&](const std::string& line, const std::string& name) {
      all += name.substr(name.rfind(':')) + line;
    });
    return all;
  };
  EXPECT_EQ(found("[{\"a\": [{}]},\n\n {\"b\": \"}\\\"{\"} ]\n"),
            ":1{\"a\": [{}]}:3{\"b\": \"}\\\"{\"}");
  EXPECT_EQ(found("[\n{\n},{}]"), ":2{\n}:3{}");
  EXPECT_EQ(found("[1]\n[2]"), ":1[1]:2[2]");
  EXPECT_EQ(found("{}\n\n{}"), ":1{}:3{}");
  for (const char* content : {"\n[\n{\"a\": 1}\n", "[{}, 1]", "[{}] x", "[{},]", "[{} {}]"})
    expect_error(ErrorKind::BadFile, {"a.json:", "expected one of them"}, [&] { found(content); });
  expect_error(ErrorKind::BadFile, {"a.json:2", "an object that does not end"},
               [&] { found("[\n{\"a\": \"}\"]"); });
  EXPECT_EQ(first_json_line(file("b.json", "\n[ {\"a\": 1}, 5]")), "{\"a\": 1}");
  EXPECT_EQ(first_json_line(file("b.jsonl", "\n\n{\"a\": 1}\n{}")), "{\"a\": 1}");
}

TEST_F(Lines, PairTwoFiles) {
  const TextPairs found =
      pairs({file("de", "eins\nzwei\n \nvier\n"), file("en", "one\ntwo\nx\nfour")});
  EXPECT_EQ(found.sources, (Texts{"eins", "zwei", "vier"}));
  EXPECT_EQ(found.targets, (Texts{"one", "two", "four"}));
  EXPECT_EQ(found.empty, 1);
}

TEST_F(Lines, SplitATableAtTabs) {
  const TextPairs found = pairs({file("table.tsv", "eins\tone\n\nzwei\ttwo\n\tthree\n")});
  EXPECT_EQ(found.sources, (Texts{"eins", "zwei"}));
  EXPECT_EQ(found.targets, (Texts{"one", "two"}));
  EXPECT_EQ(found.empty, 2);
  const TextPairs files = pairs({file("de", "eins\nzwei\n"), file("en", "one\ntwo\n")});
  EXPECT_EQ(found.hash, files.hash);  // the same content
}

TEST_F(Lines, RefuseMismatchedFiles) {
  const std::string three = file("de", "a\nb\nc\n"), two = file("en", "a\nb\n");
  expect_error(ErrorKind::BadFile, {"en: has 2 lines", "de has 3", "expected equal numbers"}, [&] {
    pairs({three, two});
  });
  expect_error(ErrorKind::BadFile, {"en:1: has 1 column", "expected 2"}, [&] { pairs({two}); });
  const std::string wide = file("wide", "a\tb\na\tb\tc\n");
  expect_error(ErrorKind::BadFile, {"wide:2: has 3 columns"}, [&] { pairs({wide}); });
  const std::string blank = file("blank", " \n\n");
  expect_error(ErrorKind::BadFile, {"contains no pair"}, [&] { pairs({blank, blank}); });
  expect_error(ErrorKind::InvalidArgument, {"pairs: 3 files", "expected two"}, [&] {
    pairs({two, two, two});
  });
  expect_error(ErrorKind::BadFile, {"nowhere"}, [&] { pairs({folder_ / "nowhere", two}); });
}

}  // namespace
}  // namespace fovea
