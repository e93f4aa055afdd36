#pragma once

#include <string>
#include <string_view>

namespace fovea::text {

// Translates a regular expression of Oniguruma (Ruby syntax) to PCRE2: classes are expanded where
// the dialects differ, and an interval is never possessive. Throws Unsupported, naming `where`, for
// syntax without an equivalent.
std::string from_oniguruma(std::string_view expression, const std::string& where);

}  // namespace fovea::text
