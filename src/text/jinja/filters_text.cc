// The filters that return text or numbers.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "jinja/builtins.h"
#include "jinja/text.h"

namespace fovea::text::jinja {
namespace {

using In = Interpreter;

// Returns the subject of a filter as text.
std::string subject(In& in, const Bound& b) {
  std::string text = to_text(in, b[0]);
  in.bytes(text.size());
  return text;
}

Value trim(In& in, Bound& b) {
  const std::string text = subject(in, b);
  return Value(b.is_none(1) ? strip(text) : strip(text, b.text(1), Side::both));
}

Value replace(In& in, Bound& b) {
  const int64_t limit = b.is_none(3) ? -1 : b.integer(3);
  return Value(replaced(in, subject(in, b), to_text(in, b[1]), to_text(in, b[2]), limit));
}

Value format(In& in, Bound& b) {
  Values& values = b.all.positional;
  const Value form = values.front();
  if (!b.all.named.empty() || !form.is(Kind::string)) {
    in.fail("filter 'format' takes a string and values without names");
  }
  values.erase(values.begin());
  return formatted(in, form, values);
}

// Returns argument `i` as text: a string unchanged, a number n as n spaces.
std::string indentation(In& in, const Bound& b, size_t i, int64_t otherwise) {
  if (b[i].is(Kind::string)) return b.text(i);
  const auto most = static_cast<int64_t>(in.limits().output_bytes) + 1;
  const auto bytes = static_cast<size_t>(std::clamp<int64_t>(b.integer(i, otherwise), 0, most));
  in.bytes(bytes);
  return std::string(bytes, ' ');
}

Value indent(In& in, Bound& b) {
  const std::string text = b.text(0) + "\n", by = indentation(in, b, 1, 4);
  const auto lines = split_lines(text);
  in.bytes(text.size() + by.size() * lines.size());
  std::string out = b.truth(2) ? by : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += "\n";
    if (i > 0 && (b.truth(3) || !lines[i].empty())) out += by;
    out += lines[i];
  }
  return Value(std::move(out));
}

Value escape(In& in, Bound& b) {
  if (b[0].is(Kind::string) && b[0].text().escaped) return b[0];
  return Value(escape_html(subject(in, b)), true);
}

// Returns JSON as transformers defines the filter: json.dumps with its options, without HTML
// escapes.
Value tojson(In& in, Bound& b) {
  JsonStyle style;
  style.ascii = b.truth(1);
  style.sorted = b.truth(4);
  if (!b.is_none(2)) {
    style.indent = indentation(in, b, 2, 0);
    style.item_separator = ",";
  }
  if (!b.is_none(3)) {
    const Values separators = to_list(in, b[3]);
    if (separators.size() != 2 || !separators[0].is(Kind::string) ||
        !separators[1].is(Kind::string)) {
      in.fail("separators of tojson; expected two strings");
    }
    style.item_separator = separators[0].bytes();
    style.key_separator = separators[1].bytes();
  }
  return Value(to_json(in, b[0], style));
}

// Returns the text that int() and float() convert, without surrounding white space and without a
// plus sign.
std::string plain_number(std::string_view text) {
  text = strip(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return std::string(text);
}

std::optional<double> real_of(const Value& value) {
  if (value.is_number()) return value.real();
  if (!value.is(Kind::string)) return std::nullopt;
  const std::string number = plain_number(value.bytes());
  double real = 0;
  const char* const end = number.data() + number.size();
  const auto [last, error] = std::from_chars(number.data(), end, real);
  if (last != end || number.empty() || error == std::errc::invalid_argument) return std::nullopt;
  return error == std::errc() ? real : std::strtod(number.c_str(), nullptr);  // infinity or 0
}

Value integer(In& in, Bound& b) {
  const Value& value = b[0];
  if (value.is_undefined()) in.fail("{}", value.message());
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::string)) {
    const std::string number = plain_number(value.bytes());
    int64_t result = 0;
    const char* const end = number.data() + number.size();
    const auto [last, error] = std::from_chars(number.data(), end, result);
    if (last == end && error == std::errc()) return Value(result);
  }
  const std::optional<double> real = real_of(value);
  if (!real || !std::isfinite(*real)) return b.given(1) ? b[1] : Value(0);
  if (std::abs(*real) >= 0x1p63) in.unsupported("{} has more than 64 bits", real_text(*real));
  return Value(static_cast<int64_t>(*real));
}

Value real(In& in, Bound& b) {
  if (b[0].is_undefined()) in.fail("{}", b[0].message());
  if (const auto number = real_of(b[0])) return Value(*number);
  return b.given(1) ? b[1] : Value(0.0);
}

Value absolute(In& in, Bound& b) {
  if (!b[0].is_number()) in.fail("bad operand type for abs(): '{}'", type_name(b[0]));
  return negate(in, b[0], std::signbit(b[0].real()));
}

constexpr Builtin kTextFilters[] = {
    {"upper", {"s"}, 1, [](In& in, Bound& b) { return Value(upper(subject(in, b))); }},
    {"lower", {"s"}, 1, [](In& in, Bound& b) { return Value(lower(subject(in, b))); }},
    {"capitalize", {"s"}, 1, [](In& in, Bound& b) { return Value(capitalize(subject(in, b))); }},
    {"title", {"s"}, 1, [](In& in, Bound& b) { return Value(title_words(subject(in, b))); }},
    {"string",
     {"s"},
     1,
     [](In& in, Bound& b) { return b[0].is(Kind::string) ? b[0] : Value(subject(in, b)); }},
    {"safe", {"s"}, 1, [](In& in, Bound& b) { return Value(subject(in, b), true); }},
    {"escape", {"s"}, 1, escape},
    {"e", {"s"}, 1, escape},
    {"trim", {"value", "chars"}, 1, trim},
    {"replace", {"s", "old", "new", "count"}, 3, replace},
    {"format", {}, 0, format},
    {"indent", {"s", "width", "first", "blank"}, 1, indent},
    {"tojson", {"x", "ensure_ascii", "indent", "separators", "sort_keys"}, 1, tojson},
    {"int", {"value", "default"}, 1, integer},
    {"float", {"value", "default"}, 1, real},
    {"abs", {"x"}, 1, absolute},
};

}  // namespace

const Builtin* find_text_filter(std::string_view name) { return find_builtin(kTextFilters, name); }

}  // namespace fovea::text::jinja
