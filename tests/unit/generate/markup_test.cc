#include "generate/markup.h"

#include <gtest/gtest.h>

namespace fovea::infer {
namespace {

using MarkupPairs = std::vector<std::pair<int64_t, int64_t>>;

bool writes_all(const std::string&) { return true; }
bool writes_none(const std::string&) { return false; }

std::string tagged(const std::string& line, const std::string& translation,
                   const MarkupPairs& aligned) {
  return with_markup(without_markup(line, writes_all), translation, aligned);
}

TEST(Markup, RemovesTagsAndKeepsUrlsAndPlaceholders) {
  const MarkedLine line = without_markup(
      "See <a href=\"x\">https://a.b/c?d=1</a>, {name}: %s of %2$d < 5 <br/> for $1 and 50% off",
      writes_all);
  EXPECT_EQ(line.plain, "See https://a.b/c?d=1, {name}: %s of %2$d < 5  for $1 and 50% off");
  EXPECT_EQ(line.fixed,
            (std::vector<std::string>{"https://a.b/c?d=1", "{name}", "%s", "%2$d", "$1"}));
  ASSERT_EQ(line.tags.size(), 3u);
  EXPECT_EQ(line.tags[0].partner, 1u);
  EXPECT_EQ(line.tags[1].partner, 0u);
  EXPECT_EQ(line.tags[2].partner, 2u);
}

TEST(Markup, TreatsTextsThatTheModelCannotWriteAsTags) {
  const MarkedLine line = without_markup("a {name} b", writes_none);
  EXPECT_EQ(line.plain, "a  b");
  EXPECT_EQ(with_markup(line, "B A", {{0, 1}, {1, 0}}), "{name}B A");
}

TEST(Markup, EnclosesTheAlignedWords) {
  const MarkupPairs reversed = {{0, 2}, {1, 1}, {2, 0}};
  EXPECT_EQ(tagged("<b>one</b> two three", "three two one", reversed), "three two <b>one</b>");
  EXPECT_EQ(tagged("<p><i>one two</i> three</p>", "three two one", reversed),
            "<p>three <i>two one</i></p>");
  EXPECT_EQ(tagged("one<br/> two three", "three two one", reversed), "three <br/>two one");
}

TEST(Markup, NeverCrossesPairs) {
  // The words of both pairs are interleaved in the translation.
  EXPECT_EQ(tagged("<a>1 2</a> <b>3 4</b>", "1 3 2 4", {{0, 0}, {1, 2}, {2, 1}, {3, 3}}),
            "<a>1 3 2</a> <b>4</b>");
}

TEST(Markup, KeepsTagsWithoutAlignedWords) {
  EXPECT_EQ(tagged("<hr/>", "", {}), "<hr/>");
  EXPECT_EQ(tagged("one <b></b>two", "x y", {}), "x y<b></b>");
}

}  // namespace
}  // namespace fovea::infer
