#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar.h"

namespace fovea::text {

// Returns the rule of the JSON strings, in quotes, whose text a regular expression matches. Without
// the anchors ^ and $, other text may precede and follow the match, as in JSON Schema's `pattern`.
// The text has `least` to `most` characters. Throws InvalidArgument if the expression is invalid or
// not supported, Unsupported if it can reach these lengths in too many ways.
Grammar::Symbol strings_matching(const std::string& pattern, int64_t least,
                                 std::optional<int64_t> most, Grammar& grammar);

// Returns the rule of JSON strings whose text differs from all of `texts`. Control characters stand
// only after the first character that differs from all of them.
Grammar::Symbol other_strings(const std::vector<std::string>& texts, Grammar& grammar);

// Returns the regular expression of a `format` of JSON Schema (Validation 2020-12, 7.3): date,
// time, date-time, email, hostname, ipv4, uri or uuid; nullptr for other formats, which restrict
// nothing. Years have four digits, from 1000.
const char* pattern_of_format(const std::string& format);

}  // namespace fovea::text
