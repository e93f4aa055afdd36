// The filters on lists, dicts and other values with items.

#include <algorithm>
#include <numeric>

#include "jinja/builtins.h"
#include "jinja/text.h"

namespace fovea::text::jinja {
namespace {

using In = Interpreter;

// The argument attribute="a.b.0" of a filter: a path from an item to a value.
class Attribute {
 public:
  Attribute(In& in, const Value& path) {  // none or missing: the item itself
    if (path.is(Kind::missing) || path.is(Kind::none)) return;
    if (!path.is(Kind::string)) {
      steps_.push_back(path);
      return;
    }
    for (const std::string_view part : split_at(in, path.bytes(), ".", -1, false)) {
      const bool digits = !part.empty() && part.size() < 19 &&
                          part.find_first_not_of("0123456789") == std::string_view::npos;
      steps_.push_back(digits ? Value(std::stoll(std::string(part))) : Value(part));
    }
    in.step(steps_.size());
  }

  // `otherwise`, if given, replaces the result of each step that finds nothing.
  Value of(In& in, const Value& item, const Value& otherwise = Value()) const {
    Value value = item;
    for (const Value& step : steps_) {
      value = in.item(value, step);
      if (value.is_undefined() && !otherwise.is(Kind::missing)) value = otherwise;
    }
    return value;
  }

 private:
  Values steps_;
};

// Returns the key to sort or compare by: strings in lower case, unless `case_sensitive`.
Value folded(In& in, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  in.bytes(value.bytes().size());
  return Value(lower(value.bytes()));
}

// Sorts stably: equal items keep their order even if `reverse` is true, as in Python.
Values sorted(In& in, const Values& items, const Values& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? less(in, keys[b], keys[a]) : less(in, keys[a], keys[b]);
  });
  Values result;
  for (const size_t index : order) result.push_back(items[index]);
  return result;
}

Value sort(In& in, Bound& b) {
  if (b[3].is(Kind::string) && b.text(3).find(',') != std::string::npos) {
    in.unsupported("filter 'sort' by several attributes is not supported");
  }
  const Attribute attribute(in, b[3]);
  const Values items = to_list(in, b[0]);
  Values keys;
  for (const Value& item : items) {
    keys.push_back(folded(in, attribute.of(in, item), b.truth(2)));
  }
  return new_sequence(in, sorted(in, items, keys, b.truth(1)));
}

Value dictsort(In& in, Bound& b) {
  const std::string by = b.given(2) ? b.text(2) : "key";
  if (by != "key" && by != "value") in.fail("dictsort by {}; expected key or value", by);
  if (!b[0].is(Kind::dict)) in.fail("dictsort of a {}; expected a dict", type_name(b[0]));
  Values pairs, keys;
  for (const auto& [key, value] : b[0].dict().entries()) {
    pairs.push_back(new_sequence(in, {key, value}, SequenceKind::tuple));
    keys.push_back(folded(in, by == "key" ? key : value, b.truth(1)));
  }
  return new_sequence(in, sorted(in, pairs, keys, b.truth(3)));
}

template <bool largest>
Value extreme(In& in, Bound& b) {
  const Attribute attribute(in, b[2]);
  Value best = Value::undefined("No aggregated item, sequence was empty."), best_key;
  for (const Value& item : to_list(in, b[0])) {
    Value key = folded(in, attribute.of(in, item), b.truth(1));
    const bool better = best_key.is(Kind::missing) ||
                        (largest ? less(in, best_key, key, ">") : less(in, key, best_key));
    if (!better) continue;
    best = item;
    best_key = std::move(key);
  }
  return best;
}

Value list(In& in, Bound& b) { return new_sequence(in, to_list(in, b[0])); }

Value length(In& in, Bound& b) {
  const auto count = jinja::length(b[0]);
  if (!count) in.fail("object of type '{}' has no len()", type_name(b[0]));
  return Value(*count);
}

Value first(In& in, Bound& b) {
  Value item = Value::undefined("No first item, sequence was empty.");
  if (auto* generator = b[0].as<Generator>()) {
    generator->next(item);
    return item;
  }
  const Values items = to_list(in, b[0]);
  return items.empty() ? item : items.front();
}

Value last(In& in, Bound& b) {
  if (b[0].as<Generator>()) in.fail("'generator' object is not reversible");
  const Values items = to_list(in, b[0]);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse(In& in, Bound& b) {
  if (b[0].is(Kind::string)) {
    return sliced(in, b[0], Value::none(), Value::none(), Value(-1));
  }
  Values items = to_list(in, b[0]);
  std::reverse(items.begin(), items.end());
  return new_generator(in, std::move(items));
}

Value join(In& in, Bound& b) {
  const std::string between = b.given(1) ? to_text(in, b[1]) : "";
  const Attribute attribute(in, b[2]);
  std::string out;
  bool is_first = true;
  for (const Value& item : to_list(in, b[0])) {
    if (!std::exchange(is_first, false)) out += between;
    append_text(in, out, attribute.of(in, item));
    if (out.size() > in.limits().output_bytes) in.bytes(out.size());
  }
  in.bytes(out.size());
  return Value(std::move(out));
}

Value items(In& in, Bound& b) {
  if (b[0].is_undefined()) return new_generator(in, {});
  if (!b[0].is(Kind::dict)) in.fail("Can only get item pairs from a mapping.");
  Values pairs;
  for (const auto& [key, value] : b[0].dict().entries()) {
    pairs.push_back(new_sequence(in, {key, value}, SequenceKind::tuple));
  }
  return new_generator(in, std::move(pairs));
}

Value unique(In& in, Bound& b) {
  const Attribute attribute(in, b[2]);
  Dict seen;
  Values kept;
  for (const Value& item : to_list(in, b[0])) {
    const Value key = folded(in, attribute.of(in, item), b.truth(1));
    if (seen.find(key)) continue;
    seen.set(in, key, Value(true));
    kept.push_back(item);
  }
  return new_generator(in, std::move(kept));
}

Value take_front(Arguments& arguments) {
  Value value = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return value;
}

std::string take_name(In& in, Arguments& arguments) {  // the name of a filter or a test
  const Value name = take_front(arguments);
  if (!name.is(Kind::string)) in.fail("expected the name of a filter or test");
  return name.bytes();
}

Arguments with_subject(const Value& item, const Arguments& rest) {
  Arguments arguments = rest;
  arguments.positional.insert(arguments.positional.begin(), item);
  return arguments;
}

// Returns the items of the subject; as in Jinja, no items if it is false, even if it is not
// iterable.
Values take_items(In& in, Arguments& arguments) {
  const Value subject = take_front(arguments);
  return truth(subject) ? to_list(in, subject) : Values();
}

Value map(In& in, Bound& b) {
  Values items = take_items(in, b.all);
  if (b.all.positional.empty()) {
    static constexpr Builtin kByAttribute = {"map", {"attribute", "default"}, 1, nullptr};
    const Bound named(in, kByAttribute, std::move(b.all));
    const Attribute attribute(in, named[0]);
    for (Value& item : items) item = attribute.of(in, item, named[1]);
  } else {
    const std::string name = take_name(in, b.all);
    for (Value& item : items) item = in.filter(name, with_subject(item, b.all));
  }
  return new_generator(in, std::move(items));
}

// Returns the items for which the test of the item, or of its attribute, gives `wanted`. Without a
// test, the truth of that value is used.
template <bool wanted, bool by_attribute>
Value select(In& in, Bound& b) {
  const Values items = take_items(in, b.all);
  Values& arguments = b.all.positional;
  if (by_attribute && arguments.empty()) in.fail("expected the name of an attribute");
  const Attribute attribute(in, by_attribute ? take_front(b.all) : Value());
  const std::string test = arguments.empty() ? "" : take_name(in, b.all);
  Values kept;
  for (const Value& item : items) {
    in.step();
    const Value value = attribute.of(in, item);
    if (truth(test.empty() ? value : in.test(test, with_subject(value, b.all))) == wanted) {
      kept.push_back(item);
    }
  }
  return new_generator(in, std::move(kept));
}

Value otherwise(In&, Bound& b) {
  const Value& value = b[0];
  const bool replaced = value.is_undefined() || (b.truth(2) && !truth(value));
  if (!replaced) return value;
  return b.given(1) ? b[1] : Value("");
}

constexpr Builtin kItemFilters[] = {
    {"list", {"value"}, 1, list},
    {"length", {"value"}, 1, length},
    {"count", {"value"}, 1, length},
    {"first", {"seq"}, 1, first},
    {"last", {"seq"}, 1, last},
    {"reverse", {"value"}, 1, reverse},
    {"join", {"value", "d", "attribute"}, 1, join},
    {"items", {"value"}, 1, items},
    {"sort", {"value", "reverse", "case_sensitive", "attribute"}, 1, sort},
    {"dictsort", {"value", "case_sensitive", "by", "reverse"}, 1, dictsort},
    {"unique", {"value", "case_sensitive", "attribute"}, 1, unique},
    {"min", {"value", "case_sensitive", "attribute"}, 1, extreme<false>},
    {"max", {"value", "case_sensitive", "attribute"}, 1, extreme<true>},
    {"map", {}, 0, map},
    {"select", {}, 0, select<true, false>},
    {"reject", {}, 0, select<false, false>},
    {"selectattr", {}, 0, select<true, true>},
    {"rejectattr", {}, 0, select<false, true>},
    {"default", {"value", "default_value", "boolean"}, 0, otherwise},
    {"d", {"value", "default_value", "boolean"}, 0, otherwise},
};

}  // namespace

const Builtin* find_item_filter(std::string_view name) { return find_builtin(kItemFilters, name); }

const Builtin* find_filter(std::string_view name) {
  const Builtin* const found = find_text_filter(name);
  return found ? found : find_item_filter(name);
}

}  // namespace fovea::text::jinja
