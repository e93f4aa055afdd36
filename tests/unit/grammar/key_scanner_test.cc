#include "grammar/key_scanner.h"

#include <gtest/gtest.h>

namespace fovea::text {
namespace {

TEST(KeyScanner, NoticesARepeatedKeyOfOneObject) {
  KeyScanner keys;
  EXPECT_TRUE(keys.read(R"({"a": 1, "b": {"a": ["a", "a"]}, )"));
  EXPECT_TRUE(keys.repeats(R"("a")"));
  EXPECT_FALSE(keys.repeats(R"("c")"));
  EXPECT_FALSE(keys.repeats(R"("a)"));
  EXPECT_TRUE(keys.read(R"("b)"));
  EXPECT_TRUE(keys.repeats(R"(":)"));
  EXPECT_FALSE(keys.repeats(R"(c":)"));
  EXPECT_FALSE(keys.read(R"(": 2})"));
}

TEST(KeyScanner, ComparesTheTextsOfEscapes) {
  KeyScanner keys;
  EXPECT_TRUE(keys.read(R"({"a\"b": 1, )"));
  EXPECT_TRUE(keys.repeats(R"("\u0061\"b")"));
  EXPECT_FALSE(keys.repeats(R"("a\\b")"));
}

TEST(KeyScanner, ReadsTokensThatCloseObjectsAndBeginOthers) {
  KeyScanner keys;
  EXPECT_TRUE(keys.read(R"([{"a": {"x": 1)"));
  EXPECT_FALSE(keys.repeats(R"(}, "x":)"));
  EXPECT_TRUE(keys.repeats(R"(}, "a":)"));
  EXPECT_FALSE(keys.repeats(R"(}}, {"a":)"));
}

}  // namespace
}  // namespace fovea::text
