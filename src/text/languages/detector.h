#pragma once

// The interface of the module fovea_languages.so, which needs libcld2.

#include <string_view>
#include <vector>

#include "fovea/text/languages.h"

namespace fovea::text {

// The name and the type of the function that the module exports. It appends the languages by the
// codes of its library. `text` has at most kMostDetected bytes.
inline constexpr const char* kDetectLanguages = "fovea_detect_languages";
using DetectLanguages = void(std::string_view text, std::vector<DetectedLanguage>& found);

// More of a text does not change its language.
inline constexpr size_t kMostDetected = size_t{1} << 16;

}  // namespace fovea::text
