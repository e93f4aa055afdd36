// The methods of strings, lists and dicts that a template may call.

#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/text.h"

namespace fovea::text::jinja {
namespace {

using In = Interpreter;

template <Side side>
Value stripped(In&, Bound& b) {
  return Value(b.is_none(1) ? strip(b.text(0), side) : strip(b.text(0), b.text(1), side));
}

template <bool from_right>
Value split(In& in, Bound& b) {
  const int64_t limit = b.integer(2, -1);
  if (b.is_none(1) && from_right)
    in.unsupported("rsplit without a separator is not supported; expected a separator");
  if (!b.is_none(1) && b.text(1).empty()) in.fail("empty separator");
  Values items;
  for (const std::string_view part : b.is_none(1)
                                         ? split_words(in, b.text(0), limit)
                                         : split_at(in, b.text(0), b.text(1), limit, from_right)) {
    items.emplace_back(part);
  }
  in.step(items.size());
  return new_sequence(in, std::move(items));
}

template <bool from_right>
Value partition(In& in, Bound& b) {
  if (b.text(1).empty()) in.fail("empty separator");
  const auto parts = split_at(in, b.text(0), b.text(1), 1, from_right);
  Values three = {b[0], Value(""), Value("")};
  if (parts.size() == 2) {
    three = {Value(parts[0]), b[1], Value(parts[1])};
  } else if (from_right) {
    std::swap(three[0], three[2]);
  }
  return new_sequence(in, std::move(three), SequenceKind::tuple);
}

// startswith() and endswith(), with one string or any string of a tuple.
template <bool at_start>
Value matches(In& in, Bound& b) {
  const Values affixes = is_tuple(b[1]) ? b[1].items() : Values{b[1]};
  in.step(affixes.size());
  return Value(std::any_of(affixes.begin(), affixes.end(), [&](const Value& affix) {
    if (!affix.is(Kind::string)) {
      in.fail("startswith or endswith of {}; expected str or a tuple of str", type_name(affix));
    }
    const std::string_view text = b.text(0);
    return at_start ? text.starts_with(affix.bytes()) : text.ends_with(affix.bytes());
  }));
}

Value join_texts(In& in, Bound& b) {
  std::string out;
  bool first = true;
  for (const Value& item : to_list(in, b[1])) {
    if (!item.is(Kind::string)) {
      in.fail("sequence item: expected str instance, {} found", type_name(item));
    }
    if (!std::exchange(first, false)) append_text(in, out, b[0]);
    append_text(in, out, item);
  }
  in.bytes(out.size());
  return Value(std::move(out));
}

// format() with fields that are "{}".
Value with_fields(In& in, Bound& b) {
  const Values& values = b.all.positional;
  const std::string form = values.front().bytes();
  if (!b.all.named.empty()) in.unsupported("format with named values is not supported");
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < form.size(); ++i) {
    const std::string_view two = std::string_view(form).substr(i, 2);
    if (two == "{}") {
      if (next == values.size()) in.fail("format has more fields than values");
      append_text(in, out, values[next++]);
    } else if (form[i] == '{' || form[i] == '}') {
      if (two != "{{" && two != "}}")
        in.unsupported("format with this field is not supported; expected {{}}");
      out += form[i];
    } else {
      out += form[i];
      continue;
    }
    ++i;
  }
  in.bytes(out.size());
  return Value(std::move(out));
}

Value index_of(In& in, Bound& b) {
  for (size_t i = 0; i < b[0].items().size(); ++i) {
    if (equal(in, b[0].items()[i], b[1])) return Value(i);
  }
  in.fail("{} is not in list", repr(in, b[1]));
}

Value get(In&, Bound& b) {
  const Value* found = b[0].dict().find(b[1]);
  if (found) return *found;
  return b.given(2) ? b[2] : Value::none();
}

// keys(), values() and items(). Dicts do not change, so a view is a copy.
template <SequenceKind kind>
Value view(In& in, Bound& b) {
  Values items;
  for (const auto& [key, value] : b[0].dict().entries()) {
    if (kind == SequenceKind::items) {
      items.push_back(new_sequence(in, {key, value}, SequenceKind::tuple));
    } else {
      items.push_back(kind == SequenceKind::keys ? key : value);
    }
  }
  return new_sequence(in, std::move(items), kind);
}

constexpr Builtin kStringMethods[] = {
    {"strip", {"self", "chars"}, 1, stripped<Side::both>},
    {"lstrip", {"self", "chars"}, 1, stripped<Side::left>},
    {"rstrip", {"self", "chars"}, 1, stripped<Side::right>},
    {"split", {"self", "sep", "maxsplit"}, 1, split<false>},
    {"rsplit", {"self", "sep", "maxsplit"}, 1, split<true>},
    {"partition", {"self", "sep"}, 2, partition<false>},
    {"rpartition", {"self", "sep"}, 2, partition<true>},
    {"startswith", {"self", "prefix"}, 2, matches<true>},
    {"endswith", {"self", "suffix"}, 2, matches<false>},
    {"join", {"self", "iterable"}, 2, join_texts},
    {"format", {}, 0, with_fields},
    {"replace",
     {"self", "old", "new", "count"},
     3,
     [](In& in, Bound& b) {
       return Value(replaced(in, b.text(0), b.text(1), b.text(2), b.integer(3, -1)));
     }},
    {"upper", {"self"}, 1, [](In&, Bound& b) { return Value(upper(b.text(0))); }},
    {"lower", {"self"}, 1, [](In&, Bound& b) { return Value(lower(b.text(0))); }},
    {"capitalize", {"self"}, 1, [](In&, Bound& b) { return Value(capitalize(b.text(0))); }},
    {"title", {"self"}, 1, [](In&, Bound& b) { return Value(title(b.text(0))); }},
};
constexpr Builtin kListMethods[] = {{"index", {"self", "value"}, 2, index_of}};
constexpr Builtin kDictMethods[] = {
    {"get", {"self", "key", "default"}, 2, get},
    {"keys", {"self"}, 1, view<SequenceKind::keys>},
    {"values", {"self"}, 1, view<SequenceKind::values>},
    {"items", {"self"}, 1, view<SequenceKind::items>},
};

class Method : public Object {
 public:
  Method(Value self, const Builtin& builtin) : self_(std::move(self)), builtin_(builtin) {}
  std::string type() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  int depth() const override { return 1 + self_.depth(); }
  Value call(Interpreter& in, Arguments&& arguments) override {
    const bool escaped = self_.is(Kind::string) && self_.text().escaped;
    if (self_.is(Kind::string)) in.bytes(self_.bytes().size());
    if (escaped && !arguments.positional.empty()) {  // the method would escape its arguments
      in.unsupported("{} with arguments is not supported for an escaped text", builtin_.name);
    }
    arguments.positional.insert(arguments.positional.begin(), self_);
    Bound bound(in, builtin_, std::move(arguments));
    const Value result = builtin_.call(in, bound);
    return escaped && result.is(Kind::string) ? Value(result.bytes(), true) : result;
  }

 private:
  Value self_;
  const Builtin& builtin_;
};

}  // namespace

Value find_method(const Value& self, std::string_view name) {
  const Builtin* const found = self.is(Kind::string) ? find_builtin(kStringMethods, name)
                               : is_list(self)       ? find_builtin(kListMethods, name)
                               : self.is(Kind::dict) ? find_builtin(kDictMethods, name)
                                                     : nullptr;
  if (!found) return Value();
  return Value(std::shared_ptr<Object>(std::make_shared<Method>(self, *found)));
}

}  // namespace fovea::text::jinja
