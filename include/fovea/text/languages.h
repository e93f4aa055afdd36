#pragma once

// The languages of translators: BCP 47 tags (RFC 5646), and the codes of models, which name the
// same languages in other ways: "eng_Latn", "en_XX", "deu".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// A row of the table of languages. `code`: ISO 639-3; of a macrolanguage such as Arabic, that of
// the individual language that translators mean. `brief`: ISO 639-1, or "".
struct Language {
  const char *code, *brief, *name;
};

// Returns the language of a code of ISO 639-1, 639-2 or 639-3, in any case, or null if the table
// lacks it.
const Language* find_language(std::string_view code);

// Returns those of `codes` that a tag or a code means. Of codes with the same language, those with
// the script and the region of the tag are preferred; a code with another script never matches
// (RFC 4647, 3.4, without a default). Chinese without a script is Hans, and Hant in TW, HK and MO.
// More than one result: the tag is ambiguous.
std::vector<std::string> matching_codes(const std::string& tag,
                                        const std::vector<std::string>& codes);

// Returns the BCP 47 tag of one of `codes`: "en" of "eng_Latn"; the script is named if another code
// has the same language. The code itself if its language is unknown.
std::string language_tag(const std::string& code, const std::vector<std::string>& codes);

// Returns the English name of a tag or a code: "Chinese (Hant)" of "zh-Hant". The tag itself if its
// language is unknown.
std::string language_name(const std::string& tag);

// A language of a text, as a BCP 47 tag, and its share of the text in percent.
struct DetectedLanguage {
  std::string language;
  double percent = 0;
};
// Returns whether detect_languages() has its module, which needs libcld2 (Compact Language Detector
// 2).
bool detects_languages();
// Returns the languages of a text, at most three, the largest share first; empty if the text is too
// short. Throws Unsupported without the module.
std::vector<DetectedLanguage> detect_languages(std::string_view text);

// Returns the first codes and the number of all, for errors: "a, b, c and 12 others".
std::string shortened(const std::vector<std::string>& codes);

}  // namespace fovea::text
