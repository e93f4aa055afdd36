// The filters that make lists of lists, pick items and order them.

#include <algorithm>
#include <array>
#include <numeric>

#include "jinja/attributes.h"
#include "jinja/characters.h"
#include "jinja/filters.h"
#include "jinja/format.h"
#include "jinja/function.h"

namespace fovea::jinja {

Attribute::Attribute(Interpreter& interpreter, const Value& path) {
  if (path.is(Kind::missing) || path.is(Kind::none)) return;
  if (!path.is(Kind::string)) {
    steps_.push_back(path);
    return;
  }
  for (const std::string_view part : split_at(path.bytes(), ".", -1, false)) {
    const bool digits = !part.empty() && part.size() < 19 &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    steps_.push_back(digits ? Value(std::stoll(std::string(part))) : Value(part));
  }
  interpreter.step(steps_.size());
}

Value Attribute::of(Interpreter& interpreter, const Value& item, const Value& otherwise) const {
  Value value = item;
  for (const Value& step : steps_) {
    value = interpreter.item(value, step);
    // A default stands in at the first step that finds nothing.
    if (value.is_undefined() && !otherwise.is(Kind::missing) && !otherwise.is(Kind::none)) {
      value = otherwise;
    }
  }
  return value;
}

Value folded(Interpreter& interpreter, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.is(Kind::string)) return value;
  interpreter.bytes(value.bytes().size());
  return Value(lower(value.bytes()));
}

void sort_by(Interpreter& interpreter, Values& items, const Values& keys, bool reverse) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return reverse ? less(interpreter, keys[b], keys[a]) : less(interpreter, keys[a], keys[b]);
  });
  Values sorted;
  sorted.reserve(items.size());
  for (const size_t place : order) sorted.push_back(items[place]);
  items = std::move(sorted);
}

namespace {

using In = Interpreter;

Value list(In& in, Arguments& arguments) {
  const Bound bound(in, "list", arguments, {"value"}, 1);
  return new_sequence(in, to_list(in, bound[0]));
}

Value length(In& in, Arguments& arguments) {
  const Bound bound(in, "length", arguments, {"value"}, 1);
  const auto count = jinja::length(in, bound[0]);
  if (!count) in.fail("object of type '{}' has no len()", type_name(bound[0]));
  return Value(*count);
}

Value first(In& in, Arguments& arguments) {
  const Bound bound(in, "first", arguments, {"seq"}, 1);
  Value item;
  if (cursor_over(in, bound[0])->next(in, item)) return item;
  return Value::undefined("No first item, sequence was empty.");
}

std::unique_ptr<Cursor> reversed(In& in, const Value& value);

Value last(In& in, Arguments& arguments) {
  const Bound bound(in, "last", arguments, {"seq"}, 1);
  const auto cursor = reversed(in, bound[0]);
  if (!cursor) in.fail("'{}' object is not reversible", type_name(bound[0]));
  Value item;
  if (cursor->next(in, item)) return item;
  return Value::undefined("No last item, sequence was empty.");
}

class Backwards : public Cursor {
 public:
  explicit Backwards(Value value, size_t count) : value_(std::move(value)), left_(count) {}
  bool next(Interpreter& interpreter, Value& item) override {
    if (left_ == 0) return false;
    interpreter.step();
    item = element(interpreter, value_, static_cast<int64_t>(--left_));
    return true;
  }

 private:
  Value value_;
  size_t left_;
};

// Python's reversed(); nullptr for what has no end to start from.
std::unique_ptr<Cursor> reversed(In& in, const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined: return cursor_over(in, value);
    case Kind::string:
      // Characters of any width: cut into a list first.
      return reversed(in, new_sequence(in, to_list(in, value)));
    case Kind::sequence: return std::make_unique<Backwards>(value, value.items().size());
    case Kind::dict: return View(value.dict(), "keys").iterate_reversed();
    case Kind::object: return value.object()->iterate_reversed();
    default: return nullptr;
  }
}

Value reverse(In& in, Arguments& arguments) {
  const Bound bound(in, "reverse", arguments, {"value"}, 1);
  if (bound[0].is(Kind::string)) {
    return sliced(in, bound[0], Value::none(), Value::none(), Value(-1));
  }
  // Undefined has a length but no items to index.
  if (bound[0].is_undefined()) return new_sequence(in, {});
  if (auto cursor = reversed(in, bound[0])) {
    return make_generator(in, std::move(cursor), bound[0].depth());
  }
  Values items = to_list(in, bound[0]);
  std::reverse(items.begin(), items.end());
  return new_sequence(in, std::move(items));
}

Value join(In& in, Arguments& arguments) {
  const Bound bound(in, "join", arguments, {"value", "d", "attribute"}, 1);
  const std::string between = bound.given(1) ? to_text(in, bound[1]) : "";
  const Attribute attribute(in, bound[2]);
  std::string out;
  bool first = true;
  const auto cursor = cursor_over(in, bound[0]);
  for (Value item; cursor->next(in, item);) {
    if (!std::exchange(first, false)) out += between;
    append_text(in, out, attribute.of(in, item));
    if (out.size() > in.limits().output_bytes) in.bytes(out.size());
  }
  in.bytes(out.size());
  return Value(std::move(out));
}

Value items(In& in, Arguments& arguments) {
  const Bound bound(in, "items", arguments, {"value"}, 1);
  if (bound[0].is_undefined()) return make_generator(in, cursor_over(in, bound[0]), 0);
  if (!bound[0].is(Kind::dict)) in.fail("Can only get item pairs from a mapping.");
  const Value view(make_view(bound[0].dict(), "items"));
  return make_generator(in, cursor_over(in, view), view.depth());
}

Value dictsort(In& in, Arguments& arguments) {
  const Bound bound(in, "dictsort", arguments, {"value", "case_sensitive", "by", "reverse"}, 1);
  const std::string by = bound.given(2) ? bound.text(2) : "key";
  if (by != "key" && by != "value") in.fail("You can only sort by either \"key\" or \"value\"");
  if (!bound[0].is(Kind::dict)) in.fail("dictsort of a {}; expected a dict", type_name(bound[0]));
  Values pairs, keys;
  for (const auto& [key, value] : bound[0].dict()->entries()) {
    pairs.push_back(new_tuple(in, {key, value}));
    keys.push_back(folded(in, by == "key" ? key : value, bound.truth(1, false)));
  }
  sort_by(in, pairs, keys, bound.truth(3, false));
  return new_sequence(in, std::move(pairs));
}

Value sort(In& in, Arguments& arguments) {
  const Bound bound(in, "sort", arguments, {"value", "reverse", "case_sensitive", "attribute"}, 1);
  const bool case_sensitive = bound.truth(2, false);
  std::vector<Attribute> parts;
  if (bound.given(3) && bound[3].is(Kind::string)) {
    for (const std::string_view part : split_at(bound.text(3), ",", -1, false)) {
      parts.emplace_back(in, Value(part));
    }
  } else {
    parts.emplace_back(in, bound[3]);
  }
  Values items = to_list(in, bound[0]), keys;
  for (const Value& item : items) {
    Values key;
    for (const Attribute& part : parts)
      key.push_back(folded(in, part.of(in, item), case_sensitive));
    keys.push_back(new_sequence(in, std::move(key)));
  }
  sort_by(in, items, keys, bound.truth(1, false));
  return new_sequence(in, std::move(items));
}

Value extreme(In& in, Arguments& arguments, bool largest) {
  const Bound bound(in, "min", arguments, {"value", "case_sensitive", "attribute"}, 1);
  const Attribute attribute(in, bound[2]);
  const auto key_of = [&](const Value& item) {
    return folded(in, attribute.of(in, item), bound.truth(1, false));
  };
  const auto cursor = cursor_over(in, bound[0]);
  Value best, best_key;
  if (!cursor->next(in, best)) {
    return Value::undefined("No aggregated item, sequence was empty.");
  }
  best_key = key_of(best);
  for (Value item; cursor->next(in, item);) {
    Value key = key_of(item);
    if (largest ? less(in, best_key, key, ">") : less(in, key, best_key)) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best;
}

Value min(In& in, Arguments& arguments) { return extreme(in, arguments, false); }
Value max(In& in, Arguments& arguments) { return extreme(in, arguments, true); }

constexpr std::array<NamedOperation, 12> sequence_filters = {{
    {"list", list},
    {"length", length},
    {"count", length},
    {"first", first},
    {"last", last},
    {"reverse", reverse},
    {"join", join},
    {"items", items},
    {"dictsort", dictsort},
    {"sort", sort},
    {"min", min},
    {"max", max},
}};

}  // namespace

Operation find_sequence_filter(std::string_view name) {
  const auto found = std::find_if(sequence_filters.begin(), sequence_filters.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == sequence_filters.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
