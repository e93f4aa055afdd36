// Regression: names of special tokens in a training text were silently treated as plain text.

#include <gtest/gtest.h>

#include "data/special_names.h"

namespace fovea::train {
namespace {

std::string found_in(const std::string& text) {
  SpecialNames names;
  names.add(text);
  return names.found();
}

TEST(SpecialNames, AreCounted) {
  EXPECT_EQ(found_in("<|im_start|>user\nHi<|im_end|>\n<|im_start|>"),
            "<|im_start|> (2 times), <|im_end|> (once)");
  EXPECT_EQ(found_in("a</s>b [CLS] <\uFF5Cbegin\u2581of\uFF5C>"),
            "</s> (once), <\uFF5Cbegin\u2581of\uFF5C> (once), [CLS] (once)");
}

TEST(SpecialNames, DifferFromTextInBrackets) {
  for (const char* text : {"", "<", "[", "a < b and c > d", "<b>bold</b>", "[1] see [2]", "<||>",
                           "<| a |>", "if (a[i] <|> b)"}) {
    EXPECT_EQ(found_in(text), "") << text;
  }
}

TEST(SpecialNames, AreFoundAcrossPartsOfAText) {
  const std::string text = std::string(100, 'x') + "<|im_start|>" + std::string(100, 'y');
  for (size_t cut = 95; cut < 118; ++cut) {
    SpecialNames names;
    names.add(text.substr(0, cut));
    names.add(text.substr(cut), false);
    EXPECT_EQ(names.found(), "<|im_start|> (once)") << cut;
    SpecialNames apart;
    apart.add(text.substr(0, cut));
    apart.add(text.substr(cut), true);
    EXPECT_EQ(apart.found(), cut > 100 && cut < 112 ? "" : "<|im_start|> (once)") << cut;
  }
}

TEST(SpecialNames, ListsAreTruncated) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "<|" + std::to_string(i) + "|>";
  EXPECT_EQ(found_in(text),
            "<|0|> (once), <|100|> (once), <|101|> (once), <|102|> (once), <|103|> (once) and 251 "
            "more");
}

}  // namespace
}  // namespace fovea::train
