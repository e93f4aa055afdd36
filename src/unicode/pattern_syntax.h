#pragma once

#include <string>
#include <string_view>

namespace fovea {

// A regular expression of Oniguruma (Ruby syntax) as PCRE2 understands it: classes are written out
// where the two differ, and an interval is never possessive. Unsupported, with `where`, for what
// has no equivalent: sets within sets.
std::string from_oniguruma(std::string_view expression, const std::string& where);

}  // namespace fovea
