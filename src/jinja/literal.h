#pragma once

// Numbers and strings as they are written in Python's and Jinja's sources, and numbers as Python
// prints them.

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace fovea::jinja {

// How many bytes of a text that starts with a digit are one number.
size_t number_length(std::string_view text, bool allow_real);
Value number_value(std::string_view digits);  // missing for an integer beyond 64 bits

// What int(text, base) and float(text) take; nothing for what they refuse. int_of fails for more
// than 64 bits.
std::optional<int64_t> int_of(Runtime& runtime, std::string_view text, int64_t base);
std::optional<double> float_of(std::string_view text);

// The text between the quotes with Python's escapes resolved; says what is wrong otherwise.
std::optional<std::string> unescaped(std::string_view text, std::string& problem);

std::string real_text(double value);  // repr(value)

}  // namespace fovea::jinja
