#include <gtest/gtest.h>

#include "tokenizer/pipeline/normalizers.h"

namespace fovea::text {
namespace {

std::string decomposed(const std::string& text) {
  AlignedText aligned;
  GrowthLimit limit = GrowthLimit::of_text(text.size());
  aligned.assign(text, 0, false, limit);
  normalize_form(NormalForm::nfd, aligned);
  return std::string(aligned.text());
}

std::string repeated(const std::string& unit, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += unit;
  return text;
}

// U+0301 is above (class 230), U+0323 below (220), U+0327 attached (202).
TEST(NormalForms, OrderManyMarksByClass) {
  for (const int count : {1, 2, 20, 21, 22, 1000}) {
    const std::string text = "a" + repeated("\u0301\u0323\u0327", count) + "b";
    EXPECT_EQ(decomposed(text), "a" + repeated("\u0327", count) + repeated("\u0323", count) +
                                    repeated("\u0301", count) + "b");
  }
}

TEST(NormalForms, KeepTheOrderOfMarksOfOneClass) {
  const std::string marks = repeated("\u0301\u0300\u0302", 100);
  EXPECT_EQ(decomposed("e" + marks), "e" + marks);
}

}  // namespace
}  // namespace fovea::text
