// The filters that look at items one by one, when they are asked for: map, select, unique.

#include <algorithm>
#include <array>

#include "jinja/attributes.h"
#include "jinja/filters.h"
#include "jinja/function.h"

namespace fovea::jinja {
namespace {

using In = Interpreter;

// A generator whose items come from those of `over`: `give` changes an item or drops it.
class Transformed : public Cursor {
 public:
  using Give = std::function<bool(In&, Value&)>;
  Transformed(In& in, const Value& over, Give give)
      : cursor_(cursor_over(in, over)), give_(std::move(give)) {}
  bool next(In& in, Value& item) override {
    while (cursor_->next(in, item)) {
      in.step();
      if (give_(in, item)) return true;
    }
    return false;
  }

 private:
  std::unique_ptr<Cursor> cursor_;
  Give give_;
};

int depth_of(const Arguments& arguments) {
  int depth = 0;
  for (const Value& value : arguments.positional) depth = std::max(depth, value.depth());
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, value.depth());
  return depth;
}

Value take_front(Arguments& arguments) {
  Value value = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return value;
}

Value transformed(In& in, const Value& over, int depth, Transformed::Give give) {
  // Jinja looks at nothing where there is nothing to look at.
  if (!truth(in, over)) return make_generator(in, cursor_over(in, Value()), 0);
  return make_generator(in, std::make_unique<Transformed>(in, over, std::move(give)), depth);
}

Arguments with_subject(const Value& item, const Arguments& rest) {
  Arguments arguments{{item}, rest.named};
  arguments.positional.insert(arguments.positional.end(), rest.positional.begin(),
                              rest.positional.end());
  return arguments;
}

Value map(In& in, Arguments& arguments) {
  const int depth = depth_of(arguments);
  const Value over = take_front(arguments);
  if (arguments.positional.empty()) {
    const Bound bound(in, "map", arguments, {"attribute", "default"}, 1);
    return transformed(
        in, over, depth,
        [attribute = Attribute(in, bound[0]), otherwise = bound[1]](In& inner, Value& item) {
          item = attribute.of(inner, item, otherwise);
          return true;
        });
  }
  const Value name = take_front(arguments);
  if (!name.is(Kind::string))
    in.fail("map of a {}; expected the name of a filter", type_name(name));
  return transformed(in, over, depth, [name, rest = arguments](In& inner, Value& item) {
    item = inner.filter(name.bytes(), with_subject(item, rest));
    return true;
  });
}

Value select_where(In& in, Arguments& arguments, bool wanted, bool by_attribute) {
  const int depth = depth_of(arguments);
  const Value over = take_front(arguments);
  Value path;
  if (by_attribute) {
    if (arguments.positional.empty()) in.fail("Missing parameter for attribute name");
    path = take_front(arguments);
  }
  const Attribute attribute(in, path);
  Value name;
  if (!arguments.positional.empty()) name = take_front(arguments);
  if (!name.is(Kind::missing) && !name.is(Kind::string)) {
    in.fail("a test of type {}; expected its name", type_name(name));
  }
  return transformed(in, over, depth, [=, rest = arguments](In& inner, Value& item) {
    const Value looked_at = attribute.of(inner, item);
    const bool holds = truth(inner, name.is(Kind::missing)
                                        ? looked_at
                                        : inner.test(name.bytes(), with_subject(looked_at, rest)));
    return holds == wanted;
  });
}

Value select(In& in, Arguments& arguments) { return select_where(in, arguments, true, false); }
Value reject(In& in, Arguments& arguments) { return select_where(in, arguments, false, false); }
Value selectattr(In& in, Arguments& arguments) { return select_where(in, arguments, true, true); }
Value rejectattr(In& in, Arguments& arguments) { return select_where(in, arguments, false, true); }

Value unique(In& in, Arguments& arguments) {
  const Bound bound(in, "unique", arguments, {"value", "case_sensitive", "attribute"}, 1);
  const bool case_sensitive = bound.truth(1, false);
  const auto seen = std::make_shared<Dict>();
  const auto undefined = std::make_shared<bool>(false);
  return make_generator(
      in,
      std::make_unique<Transformed>(in, bound[0],
                                    [seen, undefined, case_sensitive,
                                     attribute = Attribute(in, bound[2])](In& inner, Value& item) {
                                      const Value key =
                                          folded(inner, attribute.of(inner, item), case_sensitive);
                                      if (key.is_undefined())
                                        return !std::exchange(*undefined, true);
                                      if (seen->find(inner, key)) return false;
                                      seen->set(inner, key, Value(true));
                                      return true;
                                    }),
      bound[0].depth());
}

Value attr(In& in, Arguments& arguments) {
  const Bound bound(in, "attr", arguments, {"obj", "name"}, 2);
  const std::string& name = bound.text(1);
  const Value& value = bound[0];
  // Without the items that x.name would find.
  if (value.is_undefined()) in.fail("{}", value.message());
  if (value.is(Kind::dict) && know_method(value, name) == Method::none) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return in.attribute(value, name);
}

Value otherwise(In& in, Arguments& arguments) {
  const Bound bound(in, "default", arguments, {"value", "default_value", "boolean"});
  const Value& value = bound[0];
  const bool replaced = value.is_undefined() || (bound.truth(2, false) && !truth(in, value));
  if (!replaced) return value;
  return bound.given(1) ? bound[1] : Value("");
}

constexpr std::array<NamedOperation, 9> selection_filters = {{
    {"map", map},
    {"select", select},
    {"reject", reject},
    {"selectattr", selectattr},
    {"rejectattr", rejectattr},
    {"unique", unique},
    {"attr", attr},
    {"default", otherwise},
    {"d", otherwise},
}};

}  // namespace

Operation find_selection_filter(std::string_view name) {
  const auto found = std::find_if(selection_filters.begin(), selection_filters.end(),
                                  [&](const NamedOperation& each) { return each.name == name; });
  return found == selection_filters.end() ? nullptr : found->operation;
}

}  // namespace fovea::jinja
