#include "records/decompressor.h"

#include <gtest/gtest.h>

#include "fovea/core/error.h"
#include "support/compressed.h"
#include "support/expect_error.h"

namespace fovea::text {
namespace {

// Returns the text of bytes that arrive in blocks of this size.
std::string text_of(const std::string& bytes, size_t block) {
  Decompressor decompressor("file");
  std::string text;
  int ends = 0;
  for (size_t at = 0; at == 0 || at < bytes.size(); at += block)
    decompressor.pass(std::string_view(bytes).substr(at, block), at + block >= bytes.size(),
                      [&](std::string_view piece, bool last) {
                        text += piece;
                        ends += last ? 1 : 0;
                      });
  EXPECT_EQ(ends, 1);
  return text;
}

std::string long_text() {
  std::string text;
  for (int i = 0; text.size() < (size_t{5} << 19); ++i) text += fmt::format("{} ", i * 7919 % 1009);
  return text;
}

TEST(Decompressor, PassesOtherBytesUnchanged) {
  for (const std::string text : {"", "a", "abc", "abcde", "\x1F", "\x28\xB5\x2F", "\x1Fxyz"})
    for (const size_t block : {1, 2, 100}) EXPECT_EQ(text_of(text, block), text);
}

TEST(Decompressor, ReadsEachMethodInBlocksOfAnySize) {
  const std::string text = long_text();
  for (const std::string& bytes : {gzip(text), zstandard(text)})
    for (const size_t block : {size_t{3}, size_t{1000}, bytes.size() - 1, bytes.size() + 1})
      EXPECT_EQ(text_of(bytes, block), text) << block;
  EXPECT_EQ(text_of(gzip(""), 1), "");
  EXPECT_EQ(text_of(zstandard(""), 1), "");
}

TEST(Decompressor, ReadsSeveralMembers) {
  EXPECT_EQ(text_of(gzip("one ") + gzip("two"), 1), "one two");
  EXPECT_EQ(text_of(zstandard("one ") + zstandard("") + zstandard("two"), 5), "one two");
}

TEST(Decompressor, RefusesIncompleteData) {
  const std::string text = long_text();
  for (const std::string& bytes : {gzip(text), zstandard(text)}) {
    for (const size_t kept : {size_t{4}, size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
      expect_error(
          ErrorKind::BadFile,
          {fmt::format("file: ends within its compressed data (byte {}); expected", kept + 1)},
          [&] { text_of(bytes.substr(0, kept), 1000); });
    }
  }
}

TEST(Decompressor, RefusesDamagedData) {
  const std::string text = long_text();
  for (std::string bytes : {gzip(text), zstandard(text) + "more", gzip(text) + "more"}) {
    if (bytes.ends_with("more") == false) bytes[bytes.size() - 6] ^= 1;  // in the check of gzip
    expect_error(ErrorKind::BadFile, {"file: its compressed data is damaged: ", " (byte "},
                 [&] { text_of(bytes, 1000); });
  }
}

}  // namespace
}  // namespace fovea::text
