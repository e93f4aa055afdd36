#include "fovea/text/languages.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "languages/table.h"

namespace fovea::text {
namespace {

using Codes = std::vector<std::string>;

const Codes kNllb = {"eng_Latn", "por_Latn", "zho_Hans", "zho_Hant", "arb_Arab",
                     "ace_Arab", "ace_Latn", "nob_Latn", "srp_Cyrl", "yue_Hant"};

TEST(Languages, TagsSelectTheCodesOfModels) {
  const auto one = [](const std::string& tag, const Codes& codes) {
    const Codes found = matching_codes(tag, codes);
    return found.size() == 1 ? found[0] : std::to_string(found.size());
  };
  for (const auto& [tag, code] : std::vector<std::pair<std::string, std::string>>{
           {"eng_Latn", "eng_Latn"},
           {"en", "eng_Latn"},
           {"en-US", "eng_Latn"},
           {"EN", "eng_Latn"},
           {"pt-BR", "por_Latn"},
           {"zh", "zho_Hans"},
           {"zh-Hans", "zho_Hans"},
           {"zh-Hant-TW", "zho_Hant"},
           {"zh-TW", "zho_Hant"},
           {"zh-CN", "zho_Hans"},
           {"zh-yue", "yue_Hant"},
           {"ar", "arb_Arab"},
           {"no", "nob_Latn"},
           {"nb-NO", "nob_Latn"},
           {"ace-Latn", "ace_Latn"},
           {"ace", "2"},      // in two scripts
           {"sr-Latn", "0"},  // the model has another script
           {"fr", "0"},
           {"", "0"},
           {"e", "0"}}) {
    EXPECT_EQ(one(tag, kNllb), code) << tag;
  }
  const Codes mbart = {"en_XX", "de_DE", "zh_CN", "pt_XX", "fa_IR"}, m2m = {"en", "zh", "no", "he"};
  EXPECT_EQ(one("en-GB", mbart), "en_XX");
  EXPECT_EQ(one("de-AT", mbart), "de_DE");
  EXPECT_EQ(one("zh-Hans", mbart), "zh_CN");
  EXPECT_EQ(one("pes", mbart), "fa_IR");
  EXPECT_EQ(one("zh-Hant", m2m), "zh") << "its code has no script";
  EXPECT_EQ(one("nb", m2m), "no");
  EXPECT_EQ(one("iw", m2m), "he");
  const Codes regions = {"por", "por_BR", "eng"};
  EXPECT_EQ(one("pt-BR", regions), "por_BR");
  EXPECT_EQ(one("pt", regions), "por");
  EXPECT_EQ(one("pt-PT", regions), "por");
}

TEST(Languages, CodesHaveTagsAndNames) {
  EXPECT_EQ(language_tag("eng_Latn", kNllb), "en");
  EXPECT_EQ(language_tag("zho_Hant", kNllb), "zh-Hant");
  EXPECT_EQ(language_tag("ace_Arab", kNllb), "ace-Arab");
  EXPECT_EQ(language_tag("xyz", kNllb), "xyz");
  EXPECT_EQ(language_name("zh-Hant"), "Chinese (Hant)");
  EXPECT_EQ(language_name("de"), "German");
  EXPECT_EQ(language_name("auto"), "auto");
}

TEST(Languages, TheTableHasEachCodeOnce) {
  std::set<std::string> codes, briefs;
  for (const Language& language : languages()) {
    EXPECT_TRUE(codes.insert(language.code).second) << language.code;
    if (*language.brief != '\0') {
      EXPECT_TRUE(briefs.insert(language.brief).second) << language.brief;
    }
  }
  for (const auto& [other, code] : other_codes()) {
    EXPECT_TRUE(codes.contains(code)) << code;
    EXPECT_FALSE(codes.contains(other) || briefs.contains(other)) << other;
  }
}

TEST(Languages, ListsAreShortened) {
  EXPECT_EQ(shortened({"a", "b"}), "a, b");
  EXPECT_EQ(shortened(Codes(20, "x")), "x, x, x, x, x, x, x, x, x, x, x, x and 8 others");
}

TEST(Languages, AreDetectedByTheModuleOnly) {
  if (detects_languages()) {
    const auto found = detect_languages("Der Hund schläft heute in der warmen Sonne am Meer.");
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].language, "de");
    EXPECT_TRUE(detect_languages("").empty());
    return;
  }
  EXPECT_THROW(detect_languages("Hund"), Error);
}

}  // namespace
}  // namespace fovea::text
