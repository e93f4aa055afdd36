// The tests: what may follow `is`.

#include <algorithm>
#include <array>

#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/function.h"

namespace fovea::jinja {
namespace {

using In = Interpreter;

// A test of its subject alone.
template <bool (*holds)(In&, const Value&)>
Value one(In& in, Arguments& arguments) {
  const Bound bound(in, "the test", arguments, {"value"}, 1);
  return Value(holds(in, bound[0]));
}

// A test of its subject and one more value.
template <bool (*holds)(In&, const Value&, const Value&)>
Value two(In& in, Arguments& arguments) {
  const Bound bound(in, "the test", arguments, {"value", "other"}, 2);
  return Value(holds(in, bound[0], bound[1]));
}

bool defined(In&, const Value& value) { return !value.is_undefined(); }
bool undefined(In&, const Value& value) { return value.is_undefined(); }
bool none(In&, const Value& value) { return value.is(Kind::none); }
bool boolean(In&, const Value& value) { return value.is(Kind::boolean); }
bool is_true(In&, const Value& value) { return value.is(Kind::boolean) && value.boolean(); }
bool is_false(In&, const Value& value) { return value.is(Kind::boolean) && !value.boolean(); }
bool integer(In&, const Value& value) { return value.is(Kind::integer); }
bool real(In&, const Value& value) { return value.is(Kind::real); }
bool number(In&, const Value& value) { return value.is_number(); }
bool string(In&, const Value& value) { return value.is(Kind::string); }
bool mapping(In&, const Value& value) { return value.is(Kind::dict); }
bool iterable(In&, const Value& value) { return is_iterable(value); }
bool escaped(In&, const Value& value) { return value.is(Kind::string) && value.text().escaped; }

// What has a length and a __getitem__.
bool sequence(In&, const Value& value) {
  // Undefined has a __getitem__, which fails when it is called only.
  return value.is_undefined() || value.is(Kind::string) || value.is(Kind::sequence) ||
         value.is(Kind::dict) || value.as<Range>();
}

bool callable(In&, const Value& value) {
  return value.is_undefined() || (value.is(Kind::object) && value.object()->callable());
}

bool lower(In& in, const Value& value) { return is_lowercase(to_text(in, value)); }
bool upper(In& in, const Value& value) { return is_uppercase(to_text(in, value)); }

bool leaves(In& in, const Value& value, const Value& by, int64_t rest) {
  return equal(in, apply(in, ExpressionKind::modulo, value, by), Value(rest));
}
bool odd(In& in, const Value& value) { return leaves(in, value, Value(2), 1); }
bool even(In& in, const Value& value) { return leaves(in, value, Value(2), 0); }
bool divisible(In& in, const Value& value, const Value& by) { return leaves(in, value, by, 0); }

bool filter(In&, const Value& value) {
  return value.is(Kind::string) && know_filter(value.bytes()) != Known::no;
}
bool test(In&, const Value& value) {
  return value.is(Kind::string) && know_test(value.bytes()) != Known::no;
}

bool is_equal(In& in, const Value& a, const Value& b) { return equal(in, a, b); }
bool is_unequal(In& in, const Value& a, const Value& b) { return !equal(in, a, b); }
bool is_less(In& in, const Value& a, const Value& b) { return less(in, a, b); }
bool is_greater(In& in, const Value& a, const Value& b) { return less(in, b, a, ">"); }
bool at_most(In& in, const Value& a, const Value& b) { return less_equal(in, a, b); }
bool at_least(In& in, const Value& a, const Value& b) { return less_equal(in, b, a, ">="); }
bool member(In& in, const Value& a, const Value& b) { return contains(in, b, a); }

// Small integers are one object each in Python, others are not: only what is certain.
bool same_as(In& in, const Value& a, const Value& b) {
  const bool certain = a.kind() != b.kind() || same(a, b) || a.is(Kind::boolean) ||
                       a.is(Kind::sequence) || a.is(Kind::dict) || a.is(Kind::object);
  if (certain) return same(a, b);
  if (a.is_integral() && a.integer() >= -5 && a.integer() <= 256) {
    return a.integer() == b.integer();
  }
  if (!equal(in, a, b)) return false;
  in.unsupported("sameas of two {} is not supported", type_name(a));
}

constexpr std::array<NamedOperation, 34> tests = {{
    {"defined", one<defined>},
    {"undefined", one<undefined>},
    {"none", one<none>},
    {"boolean", one<boolean>},
    {"true", one<is_true>},
    {"false", one<is_false>},
    {"integer", one<integer>},
    {"float", one<real>},
    {"number", one<number>},
    {"string", one<string>},
    {"mapping", one<mapping>},
    {"iterable", one<iterable>},
    {"sequence", one<sequence>},
    {"callable", one<callable>},
    {"escaped", one<escaped>},
    {"lower", one<lower>},
    {"upper", one<upper>},
    {"odd", one<odd>},
    {"even", one<even>},
    {"filter", one<filter>},
    {"test", one<test>},
    {"divisibleby", two<divisible>},
    {"sameas", two<same_as>},
    {"in", two<member>},
    {"eq", two<is_equal>},
    {"equalto", two<is_equal>},
    {"ne", two<is_unequal>},
    {"lt", two<is_less>},
    {"lessthan", two<is_less>},
    {"gt", two<is_greater>},
    {"greaterthan", two<is_greater>},
    {"le", two<at_most>},
    {"ge", two<at_least>},
    {"==", two<is_equal>},
}};

// The operators have names too, for selectattr("n", ">", 1).
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> symbols = {
    {{"!=", "ne"}, {"<", "lt"}, {">", "gt"}, {"<=", "le"}, {">=", "ge"}}};

}  // namespace

Operation find_test(std::string_view name) {
  for (const auto& [symbol, meant] : symbols) {
    if (symbol == name) name = meant;
  }
  const auto found = std::find_if(tests.begin(), tests.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == tests.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
