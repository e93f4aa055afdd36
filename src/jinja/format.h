#pragma once

#include "jinja/characters.h"
#include "jinja/value.h"

namespace fovea::jinja {

// text % values: %s %r %d %i %u %x %X %o %c %e %f %g with flags, width and precision.
Value format_percent(Runtime& runtime, const Value& text, const Value& values);

// text.format(...): {}, {0}, {name}, attributes and items of them, !s and !r. Format specifications
// (":>10") are refused.
Value format_braces(Interpreter& interpreter, const Value& text, const Arguments& arguments);

// At least so many characters wide; `side` is where the text stays. `both` centers as Python does.
std::string padded(Runtime& runtime, std::string_view text, int64_t width, Side side,
                   std::string_view fill);

// round(value, digits) of a float, half to even on the exact value.
double rounded(double value, int64_t digits);

// pprint.pformat(value)
std::string pretty_printed(Runtime& runtime, const Value& value);

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
