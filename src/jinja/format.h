#pragma once

#include "jinja/characters.h"
#include "jinja/value.h"

namespace fovea::jinja {

// text % values: %s, %r, %d and %i without flags, width and precision.
Value format_percent(Runtime& runtime, const Value& text, const Value& values);

// This many spaces; none for a negative number.
std::string blanks(Runtime& runtime, int64_t count);

// round(value, digits) of a float, half to even on the exact value.
double rounded(double value, int64_t digits);

// JSON as Python's json.dumps writes it.
struct JsonStyle {
  bool ascii = false;
  bool sorted = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ", key_separator = ": ";
};
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

// The value of a JSON text; BadFile with `name` for what is none.
Value from_json(Runtime& runtime, std::string_view text, const std::string& name);

}  // namespace fovea::jinja
