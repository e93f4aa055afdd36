// Python's built-in operations on values.

#include <cmath>

#include "jinja/characters.h"
#include "jinja/function.h"
#include "jinja/literal.h"

namespace fovea::jinja {

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined: return "Undefined";
    case Kind::none: return "NoneType";
    case Kind::boolean: return "bool";
    case Kind::integer: return "int";
    case Kind::real: return "float";
    case Kind::string: return "str";
    case Kind::sequence: return is_list(value) ? "list" : "tuple";
    case Kind::dict: return "dict";
    case Kind::object: return value.object()->type();
  }
  return "";
}

std::string object_type(const Value& value) {
  return value.is(Kind::none) ? "None" : type_name(value) + " object";
}

namespace {

void append_items(Runtime& runtime, std::string& out, const Value& value) {
  const bool is_list = jinja::is_list(value);
  out.push_back(is_list ? '[' : '(');
  const Values& items = value.items();
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out += ", ";
    append_repr(runtime, out, items[i]);
  }
  if (!is_list && items.size() == 1) out.push_back(',');
  out.push_back(is_list ? ']' : ')');
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

}  // namespace

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
      if (value.text().escaped) runtime.unsupported("the repr of an escaped text");
      runtime.bytes(value.bytes().size());
      out += jinja::quoted(value.bytes());
      break;
    case Kind::sequence: append_items(runtime, out, value); break;
    case Kind::dict: append_entries(runtime, out, *value.dict()); break;
    case Kind::object: out += value.object()->repr(runtime);
  }
}

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

bool truth(Interpreter& interpreter, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none: return false;
    case Kind::boolean:
    case Kind::integer: return value.integer() != 0;
    case Kind::real: return value.real() != 0;
    default: return length(interpreter, value).value_or(1) != 0;
  }
}

namespace {

// -1, 0, 1; 2 where one of them is no number. Exact, also where an integer has no double.
int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer();
  }
  if (a.is_integral() || b.is_integral()) {
    // A long double holds each of the two.
    const auto x = a.is_integral() ? static_cast<long double>(a.integer()) : a.real();
    const auto y = b.is_integral() ? static_cast<long double>(b.integer()) : b.real();
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
  }
  return a.real() < b.real() ? -1 : a.real() > b.real() ? 1 : a.real() == b.real() ? 0 : 2;
}

bool equal_items(Runtime& runtime, const Value& a, const Value& b) {
  if (is_list(a) != is_list(b) || a.items().size() != b.items().size()) return false;
  for (size_t i = 0; i < a.items().size(); ++i) {
    if (!same(a.items()[i], b.items()[i]) && !equal(runtime, a.items()[i], b.items()[i])) {
      return false;
    }
  }
  return true;
}

bool equal_entries(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.find(runtime, key);
    if (!other || (!same(value, *other) && !equal(runtime, value, *other))) return false;
  }
  return true;
}

bool equal_objects(Runtime& runtime, const Value& a, const Value& b) {
  const auto x = a.as<Range>(), y = b.as<Range>();
  if (x && y) {
    return x->count == y->count &&
           (x->count == 0 || (x->start == y->start && (x->count == 1 || x->step == y->step)));
  }
  if (a.as<View>() && b.as<View>() && a.object() != b.object()) {
    runtime.unsupported("comparing the keys, values or items of dicts");
  }
  return a.object() == b.object();
}

}  // namespace

bool same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::none: return true;
    case Kind::boolean: return a.boolean() == b.boolean();
    default: return a.identity() != nullptr && a.identity() == b.identity();
  }
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  runtime.step();
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::string:
      if (a.bytes().size() == b.bytes().size()) runtime.bytes(a.bytes().size());
      return a.bytes() == b.bytes();
    case Kind::sequence: return equal_items(runtime, a, b);
    case Kind::dict: return equal_entries(runtime, *a.dict(), *b.dict());
    case Kind::object: return equal_objects(runtime, a, b);
    default: return true;  // none and none
  }
}

namespace {

[[noreturn]] void refuse_order(Runtime& runtime, const Value& a, const Value& b,
                               std::string_view op) {
  if (a.is_undefined()) runtime.fail("{}", a.message());
  if (b.is_undefined()) runtime.fail("{}", b.message());
  runtime.fail("'{}' not supported between instances of '{}' and '{}'", op, type_name(a),
               type_name(b));
}

// a < b, or a <= b.
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
  if (!a.is(Kind::sequence) || !b.is(Kind::sequence) || is_list(a) != is_list(b)) {
    refuse_order(runtime, a, b, op);
  }
  const Values &x = a.items(), &y = b.items();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!same(x[i], y[i]) && !equal(runtime, x[i], y[i])) {
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

std::optional<size_t> length(Interpreter& interpreter, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined: return 0;
    case Kind::string: return value.text().length;
    case Kind::sequence: return value.items().size();
    case Kind::dict: return value.dict()->size();
    case Kind::object: return value.object()->length(interpreter);
    default: return std::nullopt;
  }
}

namespace {

bool contains_key(Interpreter& interpreter, const Dict& dict, const Value& item) {
  if (item.is_undefined()) return false;
  if (!is_hashable(item) && !is_tuple(item) && !item.is(Kind::object)) {
    interpreter.fail("unhashable type: '{}'", type_name(item));
  }
  return dict.find(interpreter, item) != nullptr;
}

}  // namespace

bool contains(Interpreter& interpreter, const Value& container, const Value& item) {
  if (container.is(Kind::string)) {
    if (item.is_undefined()) {
      interpreter.fail("'in <string>' requires string as left operand, not Undefined");
    }
    if (!item.is(Kind::string)) {
      interpreter.fail("'in <string>' requires string as left operand, not {}", type_name(item));
    }
    interpreter.bytes(container.bytes().size());
    return container.bytes().find(item.bytes()) != std::string::npos;
  }
  if (container.is(Kind::dict)) return contains_key(interpreter, *container.dict(), item);
  if (const auto view = container.as<View>(); view && view->kind == "keys") {
    return contains_key(interpreter, *view->dict, item);
  }
  if (!is_iterable(container)) {
    interpreter.fail("argument of type '{}' is not iterable", type_name(container));
  }
  const auto cursor = cursor_over(interpreter, container);
  for (Value each; cursor->next(interpreter, each);) {
    if (same(each, item) || equal(interpreter, each, item)) return true;
  }
  return false;
}

}  // namespace fovea::jinja
