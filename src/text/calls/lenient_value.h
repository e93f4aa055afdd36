#pragma once

#include <optional>
#include <string_view>

#include "base/ordered_json.h"

namespace fovea::text {

// Reads a value at `at` as models write it: JSON, a literal of Python, or braces with bare keys and
// texts between two `mark`s (empty: none). Line breaks in texts, commas before a bracket and
// repeated keys, of which the last counts, are allowed. Returns nothing if there is no complete
// value; else `at` is after it.
std::optional<nlohmann::ordered_json> lenient_value(std::string_view text, size_t& at,
                                                    std::string_view mark = {});

// Returns the position after white space.
size_t after_space(std::string_view text, size_t at);
// Returns the text without the white space around it.
std::string_view trimmed(std::string_view text);

}  // namespace fovea::text
