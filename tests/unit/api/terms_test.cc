#include "generate/terms.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "fovea/train/train_tokenizer.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

text::Tokenizer tokenizer_of(const TemporaryFolder& folder, const std::string& text) {
  std::ofstream(folder / "text.txt") << text;
  text::TokenizerTraining options;
  options.kind = text::TokenizerKind::character;
  options.vocabulary = 0;
  return train::train_tokenizer({folder / "text.txt"}, options)->tokenizer;
}

TEST(Terms, ReturnsTheTargetsOfWholeWords) {
  const TemporaryFolder folder;
  const text::Tokenizer tokenizer = tokenizer_of(folder, "abcdefghijklmnopqrstuvwxyz ");
  std::ofstream(folder / "terms.tsv")
      << "# a comment\nHund\tdog\n\nweisser Hund\twhite dog\r\nAuge\teye\n";
  const infer::Terms terms(folder / "terms.tsv", tokenizer);
  using Texts = std::vector<std::string>;
  EXPECT_EQ(terms.targets_in("der Hund, das Auge"), (Texts{"dog", "eye"}));
  EXPECT_EQ(terms.targets_in("Hundehütte"), Texts());
  EXPECT_EQ(terms.targets_in("ein weisser Hund"), Texts{"white dog"});  // the longer term
  EXPECT_EQ(terms.targets_in("ein weisser Hund und ein Hund"), (Texts{"dog", "white dog"}));
}

TEST(Terms, EndWhereTheScriptEndsWords) {
  EXPECT_EQ(infer::find_words("ein Hund, ja", "Hund"), 4u);
  EXPECT_EQ(infer::find_words("Hundehütte", "Hund"), std::string::npos);
  EXPECT_EQ(infer::find_words("Überhund Hund", "Hund"), 10u);
  EXPECT_EQ(infer::find_words("müHund", "Hund"), std::string::npos);
  EXPECT_EQ(infer::find_words("üHund", "Hund"), std::string::npos);
  EXPECT_EQ(infer::find_words("我喜欢狗和猫", "狗"), 9u);       // no spaces between words
  EXPECT_EQ(infer::find_words("고양이는 잔다", "고양이"), 0u);  // with a particle
  EXPECT_FALSE(infer::ends_in_word("狗"));
  EXPECT_TRUE(infer::ends_in_word("größe"));
  EXPECT_FALSE(infer::begins_in_word(" a"));
}

TEST(Terms, RefusesOtherLines) {
  const TemporaryFolder folder;
  const text::Tokenizer tokenizer = tokenizer_of(folder, "abc");
  const auto refused = [&](const std::string& content, const std::string& part) {
    std::ofstream(folder / "terms.tsv") << content;
    expect_error(ErrorKind::BadFile, {"terms.tsv", part},
                 [&] { infer::Terms(folder / "terms.tsv", tokenizer); });
  };
  refused("a\tb\nHund dog\n", ":2: expected source term<TAB>target term");
  refused("a\tb\tc\n", ":1: expected");
  refused("a\tx\n", "\"x\" has characters that the model cannot write");
}

}  // namespace
}  // namespace fovea
