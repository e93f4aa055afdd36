// The module fovea_languages.so: Compact Language Detector 2, as Debian's libcld2-dev has it.

#include "languages/detector.h"

#include <cld2/public/compact_lang_det.h>
#include <cld2/public/encodings.h>

extern "C" __attribute__((visibility("default"))) void fovea_detect_languages(
    std::string_view text, std::vector<fovea::text::DetectedLanguage>& found) {
  constexpr int kMost = 3;  // languages of a text that it reports
  CLD2::Language languages[kMost];
  int percents[kMost], text_bytes = 0, valid_bytes = 0;
  double scores[kMost];
  bool reliable = false;
  const CLD2::CLDHints none = {nullptr, nullptr, CLD2::UNKNOWN_ENCODING, CLD2::UNKNOWN_LANGUAGE};
  CLD2::ExtDetectLanguageSummaryCheckUTF8(text.data(), static_cast<int>(text.size()), true, &none,
                                          0, languages, percents, scores, nullptr, &text_bytes,
                                          &reliable, &valid_bytes);
  for (int i = 0; i < kMost; ++i)
    if (languages[i] != CLD2::UNKNOWN_LANGUAGE && percents[i] > 0)
      found.push_back({CLD2::LanguageCode(languages[i]), static_cast<double>(percents[i])});
}
