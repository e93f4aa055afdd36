// The tests, which follow `is` in an expression.

#include "jinja/builtins.h"

namespace fovea::text::jinja {
namespace {

using In = Interpreter;

bool remainder_is(In& in, const Value& value, const Value& by, int64_t rest) {
  return equal(in, apply(in, ExpressionKind::modulo, value, by), Value(rest));
}

// Returns whether a value has a length and __getitem__ in Python; an undefined value has both.
bool is_sequence(const Value& value) {
  return value.is_undefined() || value.is(Kind::string) || value.is(Kind::dict) ||
         is_indexable(value);
}

bool is_callable(const Value& value) {
  return value.is_undefined() || (value.is(Kind::object) && value.object().callable());
}

bool is_flag(const Value& value, bool wanted) {
  return value.is(Kind::boolean) && value.boolean() == wanted;
}

constexpr Builtin kTests[] = {
    {"defined", {"value"}, 1, [](In&, Bound& b) { return Value(!b[0].is_undefined()); }},
    {"undefined", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is_undefined()); }},
    {"none", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::none)); }},
    {"boolean", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::boolean)); }},
    {"true", {"value"}, 1, [](In&, Bound& b) { return Value(is_flag(b[0], true)); }},
    {"false", {"value"}, 1, [](In&, Bound& b) { return Value(is_flag(b[0], false)); }},
    {"integer", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::integer)); }},
    {"float", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::real)); }},
    {"number", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is_number()); }},
    {"string", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::string)); }},
    {"mapping", {"value"}, 1, [](In&, Bound& b) { return Value(b[0].is(Kind::dict)); }},
    {"iterable", {"value"}, 1, [](In&, Bound& b) { return Value(is_iterable(b[0])); }},
    {"sequence", {"value"}, 1, [](In&, Bound& b) { return Value(is_sequence(b[0])); }},
    {"callable", {"value"}, 1, [](In&, Bound& b) { return Value(is_callable(b[0])); }},
    {"odd", {"n"}, 1, [](In& in, Bound& b) { return Value(remainder_is(in, b[0], Value(2), 1)); }},
    {"even", {"n"}, 1, [](In& in, Bound& b) { return Value(remainder_is(in, b[0], Value(2), 0)); }},
    {"divisibleby",
     {"n", "by"},
     2,
     [](In& in, Bound& b) { return Value(remainder_is(in, b[0], b[1], 0)); }},
    {"in", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(contains(in, b[1], b[0])); }},
    {"eq", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(equal(in, b[0], b[1])); }},
    {"ne", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(!equal(in, b[0], b[1])); }},
    {"lt", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(less(in, b[0], b[1])); }},
    {"gt", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(less(in, b[1], b[0], ">")); }},
    {"le", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(less_equal(in, b[0], b[1])); }},
    {"ge", {"a", "b"}, 2, [](In& in, Bound& b) { return Value(less_equal(in, b[1], b[0], ">=")); }},
};

constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"equalto", "eq"},     {"==", "eq"}, {"!=", "ne"}, {"lessthan", "lt"}, {"<", "lt"},
    {"greaterthan", "gt"}, {">", "gt"},  {"<=", "le"}, {">=", "ge"}};

}  // namespace

const Builtin* find_test(std::string_view name) {
  for (const auto& [other, meant] : kOtherNames) {
    if (other == name) name = meant;
  }
  return find_builtin(kTests, name);
}

}  // namespace fovea::text::jinja
