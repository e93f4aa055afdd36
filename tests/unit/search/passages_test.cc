#include "search/passages.h"

#include <algorithm>

#include "support/expect_error.h"

namespace fovea::infer {
namespace {

using Texts = std::vector<std::string>;

class Passages : public testing::Test {
 protected:
  std::vector<PassageSpan> spans(const std::string& text, int64_t most, int64_t overlap = 0) const {
    return cut_passages(text, {most, overlap}, tokenizer_);
  }
  Texts texts(const std::string& text, int64_t most, int64_t overlap = 0) const {
    Texts found;
    for (const PassageSpan& span : spans(text, most, overlap))
      found.push_back(text.substr(span.begin, span.end - span.begin));
    return found;
  }
  text::Tokenizer tokenizer_ =
      text::Tokenizer::open("tests/goldens/sentence_model");  // each word is one token
};

TEST_F(Passages, KeepParagraphsSeparate) {
  const std::string text = "the fox sees.\n\n  a bird\nhears!\n \nnight and day\n";
  EXPECT_EQ(texts(text, 8), (Texts{"the fox sees.", "a bird\nhears!", "night and day"}));
  EXPECT_EQ(spans(text, 8)[1], (PassageSpan{17, 30, 3, 4}));
}

TEST_F(Passages, MergeShortParagraphs) {
  EXPECT_EQ(texts("eye\n\nthe fox\n\na bird", 16), (Texts{"eye\n\nthe fox\n\na bird"}));
  EXPECT_EQ(texts("eye\n\nthe fox sees the bird", 16), (Texts{"eye\n\nthe fox sees the bird"}));
}

TEST_F(Passages, SplitLongParagraphsBetweenSentences) {
  const std::string text = "the fox sees . a bird hears ? night falls . \"day .\" never";
  EXPECT_EQ(texts(text, 8),
            (Texts{"the fox sees . a bird hears ?", "night falls . \"day .\" never"}));
  EXPECT_EQ(texts(text, 9, 4),
            (Texts{"the fox sees . a bird hears ?", "a bird hears ? night falls .",
                   "night falls . \"day .\" never"}));
}

TEST_F(Passages, SplitLongSentencesBetweenTokens) {
  EXPECT_EQ(texts("the fox sees the bird and the eye", 3),
            (Texts{"the fox sees", "the bird and", "the eye"}));
  EXPECT_EQ(texts("x。the fox！the eye", 3), (Texts{"x。", "the fox！", "the eye"}));
}

TEST_F(Passages, CoverAllWordsForAnyOptions) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += std::string(i % 3, ' ') + "fox bird eye" +
            (i % 5 == 0   ? ".\n\n"
             : i % 2 == 0 ? "? "
                          : "\n");
  for (const int64_t most : {1, 2, 5, 17, 100})
    for (const int64_t overlap : {int64_t{0}, most / 3, most - 1}) {
      size_t covered = 0;
      for (const PassageSpan& span : spans(text, most, overlap)) {
        EXPECT_LT(span.begin, span.end);
        EXPECT_EQ(
            text.substr(std::min(covered, span.begin), span.begin - std::min(covered, span.begin))
                .find_first_not_of(" \n"),
            std::string::npos);
        EXPECT_GT(span.end, covered);  // each passage adds new text
        covered = span.end;
        EXPECT_EQ(span.line, 1 + std::count(text.begin(), text.begin() + span.begin, '\n'));
      }
      EXPECT_EQ(text.substr(covered).find_first_not_of(" \n"), std::string::npos);
    }
}

TEST_F(Passages, AreEmptyForABlankText) {
  for (const std::string text : {"", " \n\n\t\r\n"}) EXPECT_TRUE(texts(text, 4).empty());
  expect_error(ErrorKind::InvalidArgument, {"passages", "overlap"}, [&] { texts("a", 4, 4); });
}

}  // namespace
}  // namespace fovea::infer
