#pragma once

#include <string>
#include <string_view>

namespace fovea {

// Translates a regular expression of Oniguruma (Ruby syntax) to PCRE2: classes are expanded where
// the two differ, and an interval is never possessive. Throws Unsupported, naming `where`, for what
// has no equivalent.
std::string from_oniguruma(std::string_view expression, const std::string& where);

}  // namespace fovea
