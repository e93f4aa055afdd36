// The filters that make numbers.

#include <algorithm>
#include <array>
#include <cmath>

#include "jinja/attributes.h"
#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/format.h"
#include "jinja/function.h"
#include "jinja/literal.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

using In = Interpreter;

Value absolute(In& in, Arguments& arguments) {
  const Bound bound(in, "abs", arguments, {"x"}, 1);
  const Value& value = bound[0];
  if (value.is(Kind::real)) return Value(std::abs(value.real()));
  if (!value.is_integral()) in.fail("bad operand type for abs(): '{}'", type_name(value));
  return value.integer() < 0 ? negate(in, value, true) : Value(value.integer());
}

// Python takes the digits of every script.
void refuse_foreign_digits(In& in, std::string_view text) {
  for (; !text.empty(); text.remove_prefix(utf8::first(text).bytes)) {
    const char32_t c = utf8::first(text).code_point;
    if (c > 0x7F && is_decimal(c)) in.unsupported("a number in digits other than 0 to 9");
  }
}

Value truncated(In& in, double value) {
  if (!(std::abs(value) < 0x1p63)) in.unsupported("{} has more than 64 bits", real_text(value));
  return Value(static_cast<int64_t>(value));
}

// int(float(value)) and its failures.
Value through_float(In& in, std::optional<double> value, const Value& otherwise) {
  if (!value || !std::isfinite(*value)) return otherwise;
  return truncated(in, *value);
}

Value integer(In& in, Arguments& arguments) {
  const Bound bound(in, "int", arguments, {"value", "default", "base"}, 1);
  const Value& value = bound[0];
  const Value otherwise = bound.given(1) ? bound[1] : Value(0);
  if (value.is_undefined()) in.fail("{}", value.message());
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::real)) {
    if (std::isinf(value.real())) in.fail("cannot convert float infinity to integer");
    return through_float(in, value.real(), otherwise);
  }
  if (!value.is(Kind::string)) return otherwise;
  refuse_foreign_digits(in, value.bytes());
  if (const auto number = int_of(in, value.bytes(), bound.integer(2, 10))) return Value(*number);
  return through_float(in, float_of(value.bytes()), otherwise);
}

Value real(In& in, Arguments& arguments) {
  const Bound bound(in, "float", arguments, {"value", "default"}, 1);
  const Value& value = bound[0];
  if (value.is_undefined()) in.fail("{}", value.message());
  if (value.is_number()) return Value(value.real());
  if (value.is(Kind::string)) refuse_foreign_digits(in, value.bytes());
  const auto number = value.is(Kind::string) ? float_of(value.bytes()) : std::optional<double>();
  if (number) return Value(*number);
  return bound.given(1) ? bound[1] : Value(0.0);
}

// round() of an integer at a negative digit: to even.
Value round_integer(In& in, int64_t value, int64_t digits) {
  if (digits >= 0) return Value(value);
  if (digits < -18) return Value(0);
  int64_t unit = 1;
  for (int64_t i = digits; i < 0; ++i) unit *= 10;
  int64_t rest = value % unit;
  if (rest < 0) rest += unit;
  const int64_t down = value - rest, half = unit / 2;
  const bool up = rest > half || (rest == half && (down / unit) % 2 != 0);
  return up ? apply(in, ExpressionKind::add, Value(down), Value(unit)) : Value(down);
}

Value round(In& in, Arguments& arguments) {
  const Bound bound(in, "round", arguments, {"value", "precision", "method"}, 1);
  const Value& value = bound[0];
  const std::string method = bound.given(2) ? bound.text(2) : "common";
  if (method != "common" && method != "ceil" && method != "floor") {
    in.fail("method must be common, ceil or floor");
  }
  if (!value.is_number()) in.fail("type {} doesn't define __round__ method", type_name(value));
  const int64_t digits = bound.integer(1, 0);
  if (method == "common") {
    if (value.is_integral()) return round_integer(in, value.integer(), digits);
    return Value(rounded(value.real(), digits));
  }
  const Value unit = apply(in, ExpressionKind::power, Value(10), Value(digits));
  const Value scaled = apply(in, ExpressionKind::multiply, value, unit);
  const double whole = method == "ceil" ? std::ceil(scaled.real()) : std::floor(scaled.real());
  return apply(in, ExpressionKind::divide, scaled.is_integral() ? scaled : truncated(in, whole),
               unit);
}

Value sum(In& in, Arguments& arguments) {
  const Bound bound(in, "sum", arguments, {"iterable", "attribute", "start"}, 1);
  const Attribute attribute(in, bound[1]);
  Value total = bound.given(2) ? bound[2] : Value(0);
  if (total.is(Kind::string)) in.fail("sum() can't sum strings [use ''.join(seq) instead]");
  const auto cursor = cursor_over(in, bound[0]);
  for (Value item; cursor->next(in, item);) {
    total = apply(in, ExpressionKind::add, total, attribute.of(in, item));
  }
  return total;
}

constexpr std::array<NamedOperation, 5> number_filters = {{
    {"abs", absolute},
    {"int", integer},
    {"float", real},
    {"round", round},
    {"sum", sum},
}};

}  // namespace

Operation find_number_filter(std::string_view name) {
  const auto found = std::find_if(number_filters.begin(), number_filters.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == number_filters.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
