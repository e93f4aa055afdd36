#include "fovea/train/deduplicate.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/compressed.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::train {
namespace {

class Deduplicate : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view text) {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  std::string out() const { return folder_ / "out.jsonl"; }
  Deduplicated run(std::vector<std::string> data, bool lines = false, double near = 0) const {
    return deduplicate({.data = std::move(data), .out = out(), .lines = lines, .near = near});
  }
  TemporaryFolder folder_;
};

TEST_F(Deduplicate, LeavesOutEqualDocuments) {
  const std::string a = write("a.jsonl", "{\"text\": \"one\\n two\"}\n{\"text\": \"three\"}\n"),
                    b = write("b.jsonl.gz",
                              gzip("{\"text\": \" one two \"}\n{\"text\": \"four\"}\n"));
  const Deduplicated found = run({a, b, write("c.txt", "three")});
  EXPECT_EQ(read_file(out()),
            "{\"text\":\"one\\n two\"}\n{\"text\":\"three\"}\n{\"text\":\"four\"}\n");
  EXPECT_EQ(found.read.number, 5);
  EXPECT_EQ(found.read.bytes, 8 + 5 + 9 + 4 + 5);
  EXPECT_EQ(found.equal.number, 2);
  EXPECT_EQ(found.equal.bytes, 9 + 5);
  EXPECT_EQ(found.kept.number, 3);
  EXPECT_EQ(found.kept.bytes, 8 + 5 + 4);
  EXPECT_EQ(found.near.number, 0);
  ASSERT_EQ(found.examples.size(), 2u);
  EXPECT_EQ(found.examples[0].where, b + ", document 1");
  EXPECT_EQ(found.examples[0].text, " one two ");
  EXPECT_EQ(found.examples[0].kept, a + ", document 1");
  EXPECT_EQ(found.examples[1].where, folder_ / "c.txt" + std::string(", document 1"));
  EXPECT_EQ(found.examples[1].kept, a + ", document 2");
}

TEST_F(Deduplicate, LeavesOutSimilarDocuments) {
  std::string long_text;
  for (int i = 0; i < 100; ++i) long_text += "word" + std::to_string(i * i) + " ";
  const std::string data =
      write("a.jsonl", "{\"text\": \"" + long_text + "\"}\n{\"text\": \"" + long_text +
                           "and more\"}\n{\"text\": \"another\"}\n");
  EXPECT_EQ(run({data}).kept.number, 3);
  const Deduplicated found = run({data}, false, 0.8);
  EXPECT_EQ(found.near.number, 1);
  EXPECT_EQ(found.kept.number, 2);
  ASSERT_EQ(found.examples.size(), 1u);
  EXPECT_NEAR(found.examples[0].similarity, 0.98, 0.05);
  EXPECT_EQ(found.examples[0].kept, data + ", document 1");
  EXPECT_LE(found.examples[0].text.size(), 103u);
}

TEST_F(Deduplicate, LeavesOutRepeatedLines) {
  const std::string a = write("a.txt", "menu\n\nfirst text\nmenu\n"),
                    b = write("b.txt", "menu\n\nsecond\nlast"), c = write("c.txt", "menu\n");
  const Deduplicated found = run({a, b, c}, true);
  EXPECT_EQ(read_file(out()),
            "{\"text\":\"menu\\n\\nfirst text\\n\"}\n{\"text\":\"\\nsecond\\nlast\"}\n");
  EXPECT_EQ(found.read.number, 9);
  EXPECT_EQ(found.equal.number, 3);
  EXPECT_EQ(found.equal.bytes, 15);
  EXPECT_EQ(found.kept.number, 6);
}

TEST_F(Deduplicate, RefusesWhatItCannotDo) {
  const std::string a = write("a.txt", "text");
  expect_error(ErrorKind::InvalidArgument, {"near: given with `lines`"},
               [&] { run({a}, true, 0.8); });
  expect_error(ErrorKind::InvalidArgument, {"near: is 0.1; expected 0, or 0.3 or more"},
               [&] { run({a}, false, 0.1); });
  expect_error(ErrorKind::InvalidArgument, {"out: ", "is one of the files of the data"},
               [&] { deduplicate({.data = {a}, .out = a}); });
  expect_error(ErrorKind::InvalidArgument, {"out: is missing"},
               [&] { deduplicate({.data = {a}, .out = ""}); });
  const std::string large = write("large.txt", std::string((size_t{65} << 20), 'x'));
  expect_error(ErrorKind::BadFile, {"large.txt, document 1: its text has more than 67108864 bytes"},
               [&] { run({large}); });
  expect_error(ErrorKind::BadFile, {"large.txt, document 1: its line has more than"},
               [&] { run({large}, true); });
  EXPECT_EQ(list_files(folder_ / ""), (std::vector<std::string>{"a.txt", "large.txt"}));
}

TEST_F(Deduplicate, CanBeStopped) {
  const Deduplicated found =
      deduplicate({.data = {write("a.txt", "text")}, .out = out()}, [](double) { return false; });
  EXPECT_TRUE(found.stopped);
  EXPECT_FALSE(is_file(out()));
}

}  // namespace
}  // namespace fovea::train
