// Regression: errors quoted names and values of hostile files and requests in full, in lines of 70
// KB.

#include "fovea/core/excerpt.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(Excerpt, KeepsAShortText) {
  EXPECT_EQ(excerpt(""), "");
  EXPECT_EQ(excerpt("a name"), "a name");
  EXPECT_EQ(excerpt(std::string(80, 'a')), std::string(80, 'a'));
}

TEST(Excerpt, CutsALongText) {
  EXPECT_EQ(excerpt(std::string(81, 'a')), std::string(80, 'a') + "...");
  EXPECT_EQ(excerpt(std::string(70'000, 'a')).size(), 83u);
  EXPECT_EQ(excerpt("abc", 2), "ab...");
  EXPECT_EQ(excerpt("abc", 0), "...");
}

TEST(Excerpt, CutsBetweenCharacters) {
  EXPECT_EQ(excerpt("a\u00e9b", 2), "a...");
  EXPECT_EQ(excerpt("a\u00e9b", 3), "a\u00e9...");
  EXPECT_EQ(excerpt("\U0001F600\U0001F600", 7), "\U0001F600...");
}

TEST(Excerpt, AcceptsInvalidUtf8) {
  EXPECT_LE(excerpt(std::string(1000, '\x80')).size(), 83u);
  EXPECT_EQ(excerpt("\xff\xfe"), "\xff\xfe");
}

TEST(Excerpt, IsOneLineWithoutControlCharacters) {
  EXPECT_EQ(excerpt(std::string_view("a\n\x1b[31m\0\x7f", 9)), "a??[31m??");
}

}  // namespace
}  // namespace fovea
