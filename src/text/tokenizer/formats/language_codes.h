#pragma once

#include <string>
#include <vector>

namespace fovea::text {

// The languages whose tokens the classes of multilingual translators add to a SentencePiece
// vocabulary, in the order of their ids (fairseq's dictionaries).
enum class LanguageCodes { nllb, m2m100, wmt21, mbart50, mbart };
std::vector<std::string> language_codes(LanguageCodes list);

}  // namespace fovea::text
