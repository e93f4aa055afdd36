#include <unordered_set>

#include "jinja/filters.h"
#include "jinja/interpreter.h"

namespace fovea::jinja {

using E = ExpressionKind;

Value Interpreter::evaluate(const Expression& node) {
  const Deeper deeper(*this);
  step();
  place = node.place;
  return evaluate_here(node);
}

Value Interpreter::evaluate_here(const Expression& node) {
  switch (node.kind) {
    case E::constant: return node.value;
    case E::name: return evaluate_name(node);
    case E::attribute: {
      const Value value = evaluate(*node.children[0]);
      place = node.place;
      return attribute(value, node.name);
    }
    case E::item: {
      const Value value = evaluate(*node.children[0]), index = evaluate(*node.children[1]);
      place = node.place;
      return item(value, index);
    }
    case E::slice: return evaluate_slice(node);
    case E::call: {
      const Value callee = evaluate(*node.children[0]);
      Arguments arguments = evaluate_arguments(node, {});
      place = node.place;
      return call(callee, std::move(arguments));
    }
    case E::filter:
    case E::test: return evaluate_filter(node);
    case E::list: return new_sequence(*this, evaluate_all(node.children));
    case E::tuple: return new_tuple(*this, evaluate_all(node.children));
    case E::dict: return evaluate_dict(node);
    case E::conditional:
    case E::logical_not:
    case E::logical_and:
    case E::logical_or: return evaluate_logical(node);
    case E::compare: return evaluate_compare(node);
    case E::concat: return evaluate_concat(node);
    case E::negative:
    case E::positive: {
      const Value value = evaluate(*node.children[0]);
      place = node.place;
      return negate(*this, value, node.kind == E::negative);
    }
    default: {
      const Value a = evaluate(*node.children[0]), b = evaluate(*node.children[1]);
      place = node.place;
      return apply(*this, node.kind, a, b);
    }
  }
}

Value Interpreter::evaluate_name(const Expression& node) {
  const Value& value = variable(node.slot);
  if (!value.is(Kind::missing)) return value;
  return Value::undefined(fmt::format("'{}' is undefined", node.name));
}

Value Interpreter::evaluate_logical(const Expression& node) {
  Value first = evaluate(*node.children[0]);
  const bool holds = truth(*this, first);
  switch (node.kind) {
    case E::logical_not: return Value(!holds);
    case E::logical_and: return holds ? evaluate(*node.children[1]) : std::move(first);
    case E::logical_or: return holds ? std::move(first) : evaluate(*node.children[1]);
    default:
      if (holds) return evaluate(*node.children[1]);
      if (node.children[2]) return evaluate(*node.children[2]);
      return Value::undefined(
          "the inline if-expression evaluated to false and no else section was defined.");
  }
}

Values Interpreter::evaluate_all(const std::vector<ExpressionPointer>& nodes) {
  Values values;
  values.reserve(nodes.size());
  for (const auto& node : nodes) values.push_back(evaluate(*node));
  return values;
}

Value Interpreter::evaluate_slice(const Expression& node) {
  Values parts;
  for (const auto& child : node.children) {
    parts.push_back(child ? evaluate(*child) : Value::none());
  }
  place = node.place;
  return sliced(*this, parts[0], parts[1], parts[2], parts[3]);
}

Value Interpreter::evaluate_dict(const Expression& node) {
  const auto made = std::make_shared<Dict>();
  for (size_t i = 0; i < node.children.size(); i += 2) {
    const Value key = evaluate(*node.children[i]);
    Value value = evaluate(*node.children[i + 1]);
    place = node.place;
    made->set(*this, key, std::move(value));
  }
  return Value(std::shared_ptr<const Dict>(made));
}

Value Interpreter::evaluate_concat(const Expression& node) {
  const Values parts = evaluate_all(node.children);
  place = node.place;
  std::string text;
  for (const Value& part : parts) append_text(*this, text, part);
  bytes(text.size());
  return Value(std::move(text));
}

bool Interpreter::compare(Comparison comparison, const Value& a, const Value& b) {
  switch (comparison) {
    case Comparison::equal: return equal(*this, a, b);
    case Comparison::not_equal: return !equal(*this, a, b);
    case Comparison::less: return less(*this, a, b, "<");
    case Comparison::less_equal: return less_equal(*this, a, b, "<=");
    case Comparison::greater: return less(*this, b, a, ">");
    case Comparison::greater_equal: return less_equal(*this, b, a, ">=");
    case Comparison::in: return contains(*this, b, a);
    case Comparison::not_in: return !contains(*this, b, a);
  }
  return false;
}

// a < b < c is a < b and b < c, with b evaluated once.
Value Interpreter::evaluate_compare(const Expression& node) {
  Value left = evaluate(*node.children[0]);
  for (size_t i = 0; i < node.operators.size(); ++i) {
    Value right = evaluate(*node.children[i + 1]);
    place = node.place;
    if (!compare(node.operators[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Arguments Interpreter::evaluate_arguments(const Expression& node, Values positional) {
  Arguments arguments{std::move(positional), {}};
  for (size_t i = 1; i < node.children.size(); ++i) {
    arguments.positional.push_back(evaluate(*node.children[i]));
  }
  for (const auto& [key, value] : node.keywords)
    arguments.named.emplace_back(key, evaluate(*value));
  if (node.star) {
    for (Value& value : to_list(*this, evaluate(*node.star))) {
      arguments.positional.push_back(std::move(value));
    }
  }
  if (!node.double_star) return arguments;
  const Value more = evaluate(*node.double_star);
  if (!more.is(Kind::dict)) fail("** of a {}; expected a dict", type_name(more));
  step((more.dict()->size() + arguments.named.size()) / 4);
  std::unordered_set<std::string> given;
  for (const auto& [name, value] : arguments.named) given.insert(name);
  for (const auto& [key, value] : more.dict()->entries()) {
    if (!key.is(Kind::string)) fail("keywords must be strings");
    if (given.contains(key.bytes()))
      fail("got multiple values for keyword argument '{}'", key.bytes());
    arguments.named.emplace_back(key.bytes(), value);
  }
  return arguments;
}

Value Interpreter::evaluate_filter(const Expression& node) {
  Values subject;
  if (node.children[0]) {
    subject.push_back(evaluate(*node.children[0]));
  } else {
    subject.push_back(*block_text_);
  }
  Arguments arguments = evaluate_arguments(node, std::move(subject));
  place = node.place;
  return node.kind == E::filter ? filter(node.name, std::move(arguments))
                                : test(node.name, std::move(arguments));
}

namespace {

// Only where a condition kept the parser from refusing it.
[[noreturn]] void refuse_unknown(const Runtime& runtime, std::string_view what,
                                 std::string_view name, Known known) {
  if (known == Known::refused) runtime.unsupported("the {} {} is not supported", what, name);
  runtime.fail("No {} named '{}'.", what, name);
}

}  // namespace

Value Interpreter::filter(std::string_view name, Arguments&& arguments) {
  const Operation operation = find_filter(name);
  if (!operation) refuse_unknown(*this, "filter", name, know_filter(name));
  return operation(*this, arguments);
}

Value Interpreter::test(std::string_view name, Arguments&& arguments) {
  const Operation operation = find_test(name);
  if (!operation) refuse_unknown(*this, "test", name, know_test(name));
  return operation(*this, arguments);
}

namespace {

void refuse_internals(const Runtime& runtime, const Value& value, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) {
    runtime.fail("access to attribute '{}' of '{}' object is unsafe", name, type_name(value));
  }
}

Value no_attribute(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_type(value), name));
}

// A method, or missing.
Value method(const Runtime& runtime, const Value& value, std::string_view name) {
  switch (know_method(value, name)) {
    case Method::none: return Value();
    case Method::callable: return bound_method(value, name);
    case Method::changes:
      return Value::undefined(fmt::format("access to attribute '{}' of '{}' object is unsafe.",
                                          name, type_name(value)));
    case Method::refused: break;
  }
  runtime.unsupported("{}.{} is not supported", type_name(value), name);
}

}  // namespace

Value Interpreter::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) fail("{}", value.message());
  refuse_internals(*this, value, name);
  Value found =
      value.is(Kind::object) ? value.object()->attribute(*this, name) : method(*this, value, name);
  if (!found.is(Kind::missing)) return found;
  if (value.is(Kind::dict)) {
    if (const Value* entry = value.dict()->find(name)) return *entry;
  }
  return no_attribute(value, name);
}

Value Interpreter::item(const Value& value, const Value& index) {
  if (value.is_undefined()) fail("{}", value.message());
  if (value.is(Kind::dict)) {
    if (const Value* entry = value.dict()->find(*this, index)) return *entry;
  } else if (index.is_integral()) {
    Value found = element(*this, value, index.integer());
    if (!found.is(Kind::missing)) return found;
  }
  if (!index.is(Kind::string)) {
    return Value::undefined(
        fmt::format("{} has no element {}", object_type(value), repr(*this, index)));
  }
  const std::string& name = index.bytes();
  refuse_internals(*this, value, name);
  Value found =
      value.is(Kind::object) ? value.object()->attribute(*this, name) : method(*this, value, name);
  return found.is(Kind::missing) ? no_attribute(value, name) : found;
}

Value Interpreter::call(const Value& callee, Arguments&& arguments) {
  if (callee.is_undefined()) fail("{}", callee.message());
  if (!callee.is(Kind::object) || !callee.object()->callable()) {
    fail("'{}' object is not callable", type_name(callee));
  }
  const Deeper deeper(*this);
  return callee.object()->call(*this, std::move(arguments));
}

}  // namespace fovea::jinja
