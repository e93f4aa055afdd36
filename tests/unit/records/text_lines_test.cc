#include "fovea/text/text_lines.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "support/compressed.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::text {
namespace {

using Texts = std::vector<std::string>;

class TextFile : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    write_file_atomically(folder_ / name, content);
    return folder_ / name;
  }
  void refused(const std::string& content, const std::string& message) const {
    for (const bool lines : {true, false})
      expect_error(ErrorKind::BadFile, {(folder_ / "bad") + message}, [&] {
        lines ? void(all_lines(file("bad", content))) : void(read_text(file("bad", content)));
      });
  }
  TemporaryFolder folder_;
};

TEST_F(TextFile, HasLinesWithEitherEnd) {
  EXPECT_EQ(all_lines(file("a", "one\ntwo\r\n\nfour")), (Texts{"one", "two", "", "four"}));
  EXPECT_EQ(all_lines(file("b", "one\n")), (Texts{"one"}));
  EXPECT_EQ(all_lines(file("c", "\xEF\xBB\xBFone\n\n")), (Texts{"one", ""}));
  EXPECT_EQ(all_lines(file("d", "a\rb\nc")), (Texts{"a\rb", "c"}));
  EXPECT_EQ(all_lines(file("e", "x\n")), (Texts{"x"}));  // shorter than a byte order mark
  EXPECT_EQ(all_lines(file("f", "")), Texts());
  expect_error(ErrorKind::BadFile, {"old:1:2: the lines end with a carriage return alone"},
               [&] { all_lines(file("old", "a\rb\rc\r")); });
}

TEST_F(TextFile, MayHaveLongLines) {
  const std::string wide = std::string(3 << 20, 'x') + "ä";
  EXPECT_EQ(all_lines(file("a", wide + "\nb\n")), (Texts{wide, "b"}));
}

TEST_F(TextFile, MayBeCompressed) {
  const std::string text = "\xEF\xBB\xBFone\r\n" + std::string(3 << 20, 'x') + "\nä\n";
  for (const std::string& bytes : {gzip(text), zstandard(text)}) {
    EXPECT_EQ(all_lines(file("a", bytes)), (Texts{"one", std::string(3 << 20, 'x'), "ä"}));
    EXPECT_EQ(read_text(file("a", bytes)), text.substr(3));
  }
  expect_error(ErrorKind::BadFile, {"a: too large; expected at most 1000 bytes"},
               [&] { read_text(file("a", zstandard(text)), 1000); });
  EXPECT_EQ(without_compression("a.jsonl.gz"), "a.jsonl");
  EXPECT_EQ(without_compression("a.txt.zst"), "a.txt");
  EXPECT_EQ(without_compression("a.gz.txt"), "a.gz.txt");
}

// A few bytes may stand for gigabytes.
TEST_F(TextFile, OfOneLineThatIsTooLongIsRefusedBeforeItIsHeld) {
  const std::string bytes = zstandard(std::string(200 << 20, 'x'));
  EXPECT_LT(bytes.size(), 100000u);
  expect_error(ErrorKind::BadFile, {"a:1: the line is too long; expected at most 67108864 bytes"},
               [&] { all_lines(file("a", bytes)); });
}

TEST_F(TextFile, IsReadWholeWithoutItsMark) {
  EXPECT_EQ(read_text(file("a", "\xEF\xBB\xBFä\r\nb")), "ä\r\nb");
  expect_error(ErrorKind::BadFile, {"a: too large; expected at most 3 bytes"},
               [&] { read_text(file("a", "abcd"), 3); });
  expect_error(ErrorKind::BadFile, {"none: cannot be read"}, [&] { read_text(folder_ / "none"); });
  expect_error(ErrorKind::BadFile, {"cannot be read"}, [&] { read_text(folder_ / ""); });
}

TEST_F(TextFile, ThatIsNoTextIsRefusedByPosition) {
  refused("one\ntwo\xFF\n", ":2:4: is not UTF-8 (byte 0xff)");
  refused("\xEF\xBB\xBFo\xFF\n", ":1:5: is not UTF-8");
  refused("ab\xC3", ":1:3: is not UTF-8");
  refused(std::string(1 << 17, '\n') + "\xC0", ":131073:1: is not UTF-8");
  refused(std::string("a\n\0b", 4), ":2:1: looks binary (a NUL byte)");
  refused(std::string("\xFF\xFE"
                      "a\0",
                      4),
          ": is UTF-16");
  refused(std::string("\xFE\xFF\0a", 4), ": is UTF-16");
  refused("\x1F\x8B\b", ": ends within its compressed data (byte 4)");
}

TEST(Blank, IsWhiteSpaceOfAnyKind) {
  for (const char* text : {"", " \t\r\n", "\xC2\xA0 \xE3\x80\x80", "\xEF\xBB\xBF"})
    EXPECT_TRUE(is_blank(text)) << text;
  for (const char* text : {"a", " \xC2", "\xE2\x80\x8Bx"}) EXPECT_FALSE(is_blank(text)) << text;
}

}  // namespace
}  // namespace fovea::text
