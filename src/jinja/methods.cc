// The methods of strings, lists, tuples and dicts that a template may call.

#include <algorithm>
#include <array>

#include "jinja/characters.h"
#include "jinja/format.h"
#include "jinja/function.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

using MethodFunction = Value (*)(Interpreter&, const Value& self, Arguments&);
struct NamedMethod {
  std::string_view name;
  MethodFunction function;
};

Value texts(Interpreter& interpreter, const std::vector<std::string_view>& parts) {
  Values items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) items.emplace_back(part);
  interpreter.step(items.size());
  return new_sequence(interpreter, std::move(items));
}

void none_taken(Interpreter& interpreter, Arguments& arguments, std::string_view name) {
  const Bound bound(interpreter, name, arguments, {});
}

Value strip_with(Interpreter& interpreter, const Value& self, Arguments& arguments, Side side) {
  const Bound bound(interpreter, "strip", arguments, {"chars"});
  const std::string& text = self.bytes();
  return Value(bound.is_none(0) ? strip(text, side) : strip(text, bound.text(0), side));
}

Value strip_both(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return strip_with(interpreter, self, arguments, Side::both);
}
Value lstrip(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return strip_with(interpreter, self, arguments, Side::left);
}
Value rstrip(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return strip_with(interpreter, self, arguments, Side::right);
}

Value split_with(Interpreter& interpreter, const Value& self, Arguments& arguments,
                 bool from_right) {
  const Bound bound(interpreter, "split", arguments, {"sep", "maxsplit"});
  const int64_t limit = bound.integer(1, -1);
  if (bound.is_none(0)) {
    return texts(interpreter, split_words(self.bytes(), limit, from_right));
  }
  const std::string& separator = bound.text(0);
  if (separator.empty()) interpreter.fail("empty separator");
  return texts(interpreter, split_at(self.bytes(), separator, limit, from_right));
}

Value split(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return split_with(interpreter, self, arguments, false);
}
Value rsplit(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return split_with(interpreter, self, arguments, true);
}

Value splitlines(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "splitlines", arguments, {"keepends"});
  return texts(interpreter, split_lines(self.bytes(), bound.truth(0, false)));
}

Value partition_with(Interpreter& interpreter, const Value& self, Arguments& arguments,
                     bool from_right) {
  const Bound bound(interpreter, "partition", arguments, {"sep"}, 1);
  const std::string &text = self.bytes(), &separator = bound.text(0);
  if (separator.empty()) interpreter.fail("empty separator");
  const auto parts = split_at(text, separator, 1, from_right);
  if (parts.size() == 2) {
    return new_tuple(interpreter, {Value(parts[0]), Value(separator), Value(parts[1])});
  }
  return from_right ? new_tuple(interpreter, {Value(""), Value(""), self})
                    : new_tuple(interpreter, {self, Value(""), Value("")});
}

Value partition(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return partition_with(interpreter, self, arguments, false);
}
Value rpartition(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return partition_with(interpreter, self, arguments, true);
}

// The part of a text between two character positions as find() and startswith() take them; nothing
// where the start is beyond the end.
struct Part {
  std::string_view text;
  int64_t start;
};
std::optional<Part> part_of(const Value& self, const Bound& bound) {
  const auto length = static_cast<int64_t>(self.text().length);
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t index = bound.is_none(i) ? otherwise : bound.integer(i);
    return index < 0 ? std::max<int64_t>(index + length, 0) : index;
  };
  const int64_t start = place(1, 0), end = std::min(place(2, length), length);
  if (start > length || start > end) return std::nullopt;
  const std::string_view all = self.bytes();
  const size_t begin = byte_of(all, static_cast<size_t>(start));
  return Part{all.substr(begin, byte_of(all, static_cast<size_t>(end)) - begin), start};
}

Value matches(Interpreter& interpreter, const Value& self, Arguments& arguments, bool at_start) {
  const Bound bound(interpreter, at_start ? "startswith" : "endswith", arguments,
                    {"prefix", "start", "end"}, 1);
  const auto part = part_of(self, bound);
  const auto holds = [&](const Value& affix) {
    if (!affix.is(Kind::string)) {
      interpreter.fail("{} first arg must be str or a tuple of str, not {}",
                       at_start ? "startswith" : "endswith", type_name(affix));
    }
    if (!part) return false;
    return at_start ? part->text.starts_with(affix.bytes()) : part->text.ends_with(affix.bytes());
  };
  if (!is_tuple(bound[0])) return Value(holds(bound[0]));
  const Values& affixes = bound[0].items();
  interpreter.step(affixes.size());
  return Value(std::any_of(affixes.begin(), affixes.end(), holds));
}

Value startswith(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return matches(interpreter, self, arguments, true);
}
Value endswith(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return matches(interpreter, self, arguments, false);
}

Value find_with(Interpreter& interpreter, const Value& self, Arguments& arguments, bool from_right,
                bool must_be) {
  const Bound bound(interpreter, "find", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = bound.text(0);
  const auto part = part_of(self, bound);
  const size_t at = !part        ? std::string_view::npos
                    : from_right ? part->text.rfind(wanted)
                                 : part->text.find(wanted);
  if (at == std::string_view::npos) {
    if (must_be) interpreter.fail("substring not found");
    return Value(-1);
  }
  return Value(part->start + static_cast<int64_t>(characters(part->text.substr(0, at))));
}

Value find(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return find_with(interpreter, self, arguments, false, false);
}
Value rfind(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return find_with(interpreter, self, arguments, true, false);
}
Value index(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return find_with(interpreter, self, arguments, false, true);
}
Value rindex(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  return find_with(interpreter, self, arguments, true, true);
}

Value count(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "count", arguments, {"sub", "start", "end"}, 1);
  const std::string& wanted = bound.text(0);
  const auto part = part_of(self, bound);
  if (!part) return Value(0);
  if (wanted.empty()) return Value(characters(part->text) + 1);
  size_t found = 0;
  for (size_t at = part->text.find(wanted); at != std::string_view::npos;
       at = part->text.find(wanted, at + wanted.size())) {
    ++found;
  }
  return Value(found);
}

Value replace(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  if (!arguments.named.empty()) interpreter.fail("str.replace() takes no keyword arguments");
  const Bound bound(interpreter, "replace", arguments, {"old", "new", "count"}, 2);
  return Value(
      replaced(interpreter, self.bytes(), bound.text(0), bound.text(1), bound.integer(2, -1)));
}

Value join(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "join", arguments, {"iterable"}, 1);
  std::string out;
  bool first = true;
  const auto cursor = cursor_over(interpreter, bound[0]);
  for (Value item; cursor->next(interpreter, item);) {
    if (!item.is(Kind::string)) {
      interpreter.fail("sequence item: expected str instance, {} found", type_name(item));
    }
    if (!std::exchange(first, false)) append_text(interpreter, out, self);
    append_text(interpreter, out, item);
  }
  interpreter.bytes(out.size());
  return Value(std::move(out));
}

template <std::string (*convert)(std::string_view)>
Value converted(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  none_taken(interpreter, arguments, "the method");
  return Value(convert(self.bytes()));
}

Value removeprefix(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "removeprefix", arguments, {"prefix"}, 1);
  std::string_view text = self.bytes();
  if (text.starts_with(bound.text(0))) text.remove_prefix(bound.text(0).size());
  return Value(text);
}
Value removesuffix(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "removesuffix", arguments, {"suffix"}, 1);
  std::string_view text = self.bytes();
  if (text.ends_with(bound.text(0))) text.remove_suffix(bound.text(0).size());
  return Value(text);
}

Value list_index(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "index", arguments, {"value", "start", "stop"}, 1);
  const auto length = static_cast<int64_t>(self.items().size());
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = bound.integer(i, otherwise);
    return std::clamp<int64_t>(at < 0 ? at + length : at, 0, length);
  };
  for (int64_t i = place(1, 0); i < place(2, length); ++i) {
    const Value& item = self.items()[static_cast<size_t>(i)];
    if (same(item, bound[0]) || equal(interpreter, item, bound[0])) return Value(i);
  }
  interpreter.fail("{} is not in list", repr(interpreter, bound[0]));
}

Value list_count(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  const Bound bound(interpreter, "count", arguments, {"value"}, 1);
  int64_t found = 0;
  for (const Value& item : self.items()) {
    found += same(item, bound[0]) || equal(interpreter, item, bound[0]) ? 1 : 0;
  }
  return Value(found);
}

Value copied(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  none_taken(interpreter, arguments, "copy");
  if (self.is(Kind::sequence)) return new_sequence(interpreter, self.items());
  interpreter.step(self.dict()->size());
  const auto copy = std::make_shared<Dict>();
  for (const auto& [key, value] : self.dict()->entries()) copy->set(interpreter, key, value);
  return Value(std::shared_ptr<const Dict>(copy));
}

Value dict_get(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  if (!arguments.named.empty()) interpreter.fail("dict.get() takes no keyword arguments");
  const Bound bound(interpreter, "get", arguments, {"key", "default"}, 1);
  const Value* found = self.dict()->find(interpreter, bound[0]);
  if (found) return *found;
  return bound.given(1) ? bound[1] : Value::none();
}

Value dict_items(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  none_taken(interpreter, arguments, "items");
  return Value(make_view(self.dict(), "items"));
}
Value dict_keys(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  none_taken(interpreter, arguments, "keys");
  return Value(make_view(self.dict(), "keys"));
}
Value dict_values(Interpreter& interpreter, const Value& self, Arguments& arguments) {
  none_taken(interpreter, arguments, "values");
  return Value(make_view(self.dict(), "values"));
}

constexpr std::array<NamedMethod, 23> string_methods = {{
    {"strip", strip_both},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"split", split},
    {"rsplit", rsplit},
    {"splitlines", splitlines},
    {"partition", partition},
    {"rpartition", rpartition},
    {"startswith", startswith},
    {"endswith", endswith},
    {"find", find},
    {"rfind", rfind},
    {"index", index},
    {"rindex", rindex},
    {"count", count},
    {"replace", replace},
    {"join", join},
    {"upper", converted<jinja::upper>},
    {"lower", converted<jinja::lower>},
    {"capitalize", converted<jinja::capitalize>},
    {"title", converted<jinja::title>},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
}};
constexpr std::array<NamedMethod, 3> list_methods = {
    {{"index", list_index}, {"count", list_count}, {"copy", copied}}};
constexpr std::array<NamedMethod, 5> dict_methods = {{{"get", dict_get},
                                                      {"items", dict_items},
                                                      {"keys", dict_keys},
                                                      {"values", dict_values},
                                                      {"copy", copied}}};

// What Python's types have beyond that: refused by name.
constexpr std::array<std::string_view, 24> more_of_strings = {
    "casefold", "center",    "encode",      "expandtabs", "format",    "format_map",
    "isalnum",  "isalpha",   "isascii",     "isdecimal",  "isdigit",   "isidentifier",
    "islower",  "isnumeric", "isprintable", "isspace",    "istitle",   "isupper",
    "ljust",    "maketrans", "rjust",       "swapcase",   "translate", "zfill"};
constexpr std::array<std::string_view, 8> more_of_lists = {"append", "clear",  "extend",  "insert",
                                                           "pop",    "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 6> more_of_dicts = {"clear",      "pop",    "popitem",
                                                           "setdefault", "update", "fromkeys"};
constexpr std::array<std::string_view, 11> more_of_numbers = {
    "real",      "imag",       "numerator", "denominator",
    "conjugate", "bit_length", "bit_count", "as_integer_ratio",
    "to_bytes",  "from_bytes", "is_integer"};

const NamedMethod* look_up(const auto& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const NamedMethod& each) { return each.name == name; });
  return found != table.end() ? &*found : nullptr;
}

const NamedMethod* look_up(const Value& value, std::string_view name) {
  switch (value.kind()) {
    case Kind::string: return look_up(string_methods, name);
    case Kind::sequence:
      return is_tuple(value) && name == "copy" ? nullptr : look_up(list_methods, name);
    case Kind::dict: return look_up(dict_methods, name);
    default: return nullptr;
  }
}

bool has(const auto& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Method know_method(const Value& value, std::string_view name) {
  if (look_up(value, name)) return Method::callable;
  if (value.is(Kind::string) && has(more_of_strings, name)) return Method::refused;
  if (is_list(value) && has(more_of_lists, name)) return Method::changes;
  if (value.is(Kind::dict) && has(more_of_dicts, name)) {
    return name == "fromkeys" ? Method::refused : Method::changes;
  }
  if (value.is_number() && has(more_of_numbers, name)) return Method::refused;
  return Method::none;
}

Value bound_method(const Value& self, std::string_view name) {
  const NamedMethod& method = *look_up(self, name);
  return make_function(
      std::string(name),
      [self, &method](Interpreter& interpreter, Arguments& arguments) {
        if (self.is(Kind::string)) {
          interpreter.bytes(self.bytes().size());
          const bool plain = arguments.positional.empty() && arguments.named.empty();
          if (self.text().escaped && !plain) {
            interpreter.unsupported("{} of an escaped text", method.name);
          }
        }
        return method.function(interpreter, self, arguments);
      },
      self.depth());
}

}  // namespace fovea::jinja
