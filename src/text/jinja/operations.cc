// Python's built-in operations on values: text, truth, comparison, iteration.

#include <algorithm>
#include <cmath>

#include "jinja/text.h"
#include "jinja/value.h"
#include "unicode/utf8.h"

namespace fovea::text::jinja {
namespace {

// The names of Python's types, by SequenceKind and by Kind.
constexpr std::string_view kSequenceNames[] = {"list",      "tuple",       "range",
                                               "dict_keys", "dict_values", "dict_items"};
constexpr std::string_view kTypeNames[] = {"Undefined", "Undefined", "NoneType", "bool", "int",
                                           "float",     "str",       "",         "dict", ""};

std::string_view sequence_name(SequenceKind kind) {
  return kSequenceNames[static_cast<size_t>(kind)];
}

}  // namespace

std::string type_name(const Value& value) {
  if (value.is(Kind::object)) return value.object().type();
  if (value.is(Kind::sequence)) return std::string(sequence_name(value.sequence().kind));
  return std::string(kTypeNames[static_cast<size_t>(value.kind())]);
}

std::string object_type(const Value& value) {
  return value.is(Kind::none) ? "None" : type_name(value) + " object";
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{}", value);  // the shortest digits, as in Python
  if (text.find_first_not_of("-0123456789") == text.npos) text += ".0";
  return text;
}

namespace {

void append_repr(Runtime& runtime, std::string& out, const Value& value);

void append_items(Runtime& runtime, std::string& out, const Sequence& sequence) {
  if (sequence.kind == SequenceKind::range)
    runtime.unsupported("printing a range is not supported");
  const bool is_tuple = sequence.kind == SequenceKind::tuple;
  const bool is_view = sequence.kind > SequenceKind::range;
  if (is_view) out += fmt::format("{}(", sequence_name(sequence.kind));
  out.push_back(is_tuple ? '(' : '[');
  for (size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, out, sequence.items[i]);
  }
  if (is_tuple && sequence.items.size() == 1) out.push_back(',');
  out.push_back(is_tuple ? ')' : ']');
  if (is_view) out.push_back(')');
}

void append_entries(Runtime& runtime, std::string& out, const Dict& dict) {
  out.push_back('{');
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!std::exchange(first, false)) out += ", ";
    append_repr(runtime, out, key);
    out += ": ";
    append_repr(runtime, out, value);
  }
  out.push_back('}');
}

void append_repr(Runtime& runtime, std::string& out, const Value& value) {
  runtime.step();
  if (out.size() > runtime.limits().output_bytes) runtime.bytes(out.size());
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined: out += "Undefined"; break;
    case Kind::none: out += "None"; break;
    case Kind::boolean: out += value.boolean() ? "True" : "False"; break;
    case Kind::integer: out += std::to_string(value.integer()); break;
    case Kind::real: out += real_text(value.real()); break;
    case Kind::string:
      if (value.text().escaped) runtime.unsupported("the repr of an escaped text is not supported");
      runtime.bytes(value.bytes().size());
      out += jinja::quoted(value.bytes());
      break;
    case Kind::sequence: append_items(runtime, out, value.sequence()); break;
    case Kind::dict: append_entries(runtime, out, value.dict()); break;
    case Kind::object:  // its text in Python contains a memory address
      runtime.unsupported("printing a {} is not supported", value.object().type());
  }
}

}  // namespace

void append_text(Runtime& runtime, std::string& out, const Value& value) {
  if (value.is(Kind::string)) {
    if (out.size() + value.bytes().size() > runtime.limits().output_bytes) {
      runtime.bytes(out.size() + value.bytes().size());
    }
    out += value.bytes();
  } else if (!value.is_undefined()) {
    append_repr(runtime, out, value);
  }
}

std::string to_text(Runtime& runtime, const Value& value) {
  std::string out;
  append_text(runtime, out, value);
  return out;
}

std::string repr(Runtime& runtime, const Value& value) {
  std::string out;
  append_repr(runtime, out, value);
  return out;
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return value.integer() != 0;
    case Kind::real: return value.real() != 0;
    default: return length(value).value_or(1) != 0;
  }
}

namespace {

// Returns -1, 0 or 1; 2 if a number is NaN. A long double can represent every integer and every
// double.
int compare_numbers(const Value& a, const Value& b) {
  const auto wide = [](const Value& value) {
    return value.is_integral() ? static_cast<long double>(value.integer())
                               : static_cast<long double>(value.real());
  };
  const long double x = wide(a), y = wide(b);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

bool is_same(const Value& a, const Value& b) {  // Python's `is`, for shared data
  return a.identity() != nullptr && a.identity() == b.identity();
}

bool equal_items(Runtime& runtime, const Sequence& a, const Sequence& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!is_same(a.items[i], b.items[i]) && !equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_entries(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(key);
    if (!other || (!is_same(value, *other) && !equal(runtime, value, *other))) return false;
  }
  return true;
}

}  // namespace

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.step();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::string:
      if (a.bytes().size() == b.bytes().size()) runtime.bytes(a.bytes().size());
      return a.bytes() == b.bytes();
    case Kind::sequence: return equal_items(runtime, a.sequence(), b.sequence());
    case Kind::dict: return equal_entries(runtime, a.dict(), b.dict());
    case Kind::object: return is_same(a, b);
    default: return true;  // both are none
  }
}

namespace {

// Returns a < b, or a <= b if `or_equal`.
bool ordered(Runtime& runtime, const Value& a, const Value& b, bool or_equal, std::string_view op) {
  runtime.step();
  if (a.is_number() && b.is_number()) {
    const int order = compare_numbers(a, b);
    return order == -1 || (or_equal && order == 0);
  }
  if (a.is(Kind::string) && b.is(Kind::string)) {
    runtime.bytes(std::min(a.bytes().size(), b.bytes().size()));
    return or_equal ? a.bytes() <= b.bytes() : a.bytes() < b.bytes();
  }
  if (a.is_undefined()) runtime.fail("{}", a.message());
  if (b.is_undefined()) runtime.fail("{}", b.message());
  if ((!is_list(a) || !is_list(b)) && (!is_tuple(a) || !is_tuple(b))) {
    runtime.fail("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
                 type_name(b));
  }
  const Values &x = a.items(), &y = b.items();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!is_same(x[i], y[i]) && !equal(runtime, x[i], y[i])) {
      return ordered(runtime, x[i], y[i], or_equal, op);
    }
  }
  return or_equal ? x.size() <= y.size() : x.size() < y.size();
}

}  // namespace

bool less(Runtime& runtime, const Value& a, const Value& b, std::string_view op) {
  return ordered(runtime, a, b, false, op);
}

bool less_equal(Runtime& runtime, const Value& a, const Value& b, std::string_view op) {
  return ordered(runtime, a, b, true, op);
}

std::optional<size_t> length(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined: return 0;
    case Kind::string: return value.text().length;
    case Kind::sequence: return value.items().size();
    case Kind::dict: return value.dict().size();
    default: return std::nullopt;
  }
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Kind::string)) {
    if (!item.is(Kind::string)) {
      runtime.fail("'in <string>' requires string as left operand, not {}", type_name(item));
    }
    runtime.bytes(container.bytes().size());
    return container.bytes().find(item.bytes()) != std::string::npos;
  }
  if (container.is(Kind::dict)) {
    if (is_list(item) || item.is(Kind::dict)) {
      runtime.fail("unhashable type: '{}'", type_name(item));
    }
    return container.dict().find(item) != nullptr;
  }
  if (!is_iterable(container)) {
    runtime.fail("argument of type '{}' is not iterable", type_name(container));
  }
  const Values items = to_list(runtime, container);
  return std::any_of(items.begin(), items.end(), [&](const Value& each) {
    return is_same(each, item) || equal(runtime, each, item);
  });
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::string:
    case Kind::sequence:
    case Kind::dict: return true;
    default: return value.as<Generator>() != nullptr;
  }
}

Values to_list(Runtime& runtime, const Value& value) {
  if (!is_iterable(value)) runtime.fail("'{}' object is not iterable", type_name(value));
  runtime.step(1 + length(value).value_or(0) / 4);
  Values items;
  if (value.is(Kind::sequence)) return value.items();
  if (value.is(Kind::dict)) {
    for (const auto& entry : value.dict().entries()) items.push_back(entry.first);
  } else if (value.is(Kind::string)) {
    runtime.step(value.text().length);
    runtime.room(value.text().length * (sizeof(Value) + Text::kTextBytes));
    for (std::string_view rest = value.bytes(); !rest.empty();) {
      const size_t bytes = utf8::first(rest).bytes;
      items.emplace_back(rest.substr(0, bytes));
      rest.remove_prefix(bytes);
    }
  } else if (auto* generator = value.as<Generator>()) {
    for (Value item; generator->next(item); runtime.step()) items.push_back(item);
  }
  return items;
}

}  // namespace fovea::text::jinja
