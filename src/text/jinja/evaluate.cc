#include "jinja/builtins.h"

namespace fovea::text::jinja {

using E = ExpressionKind;

Value Interpreter::evaluate(const Expression& node) {
  const Level guard(depth_);
  check_depth();
  step();
  position = node.position;
  return evaluate_here(node);
}

Value Interpreter::evaluate_here(const Expression& node) {
  switch (node.kind) {
    case E::constant: return node.value;
    case E::name: return evaluate_name(node.name);
    case E::attribute: {
      const Value value = evaluate(*node.children[0]);
      position = node.position;
      return attribute(value, node.name);
    }
    case E::item: {
      const Value value = evaluate(*node.children[0]), index = evaluate(*node.children[1]);
      position = node.position;
      return item(value, index);
    }
    case E::slice: return evaluate_slice(node);
    case E::call: return evaluate_call(node);
    case E::filter:
    case E::test: return evaluate_filter(node);
    case E::list: return new_sequence(*this, evaluate_all(node.children));
    case E::tuple: return new_sequence(*this, evaluate_all(node.children), SequenceKind::tuple);
    case E::dict: return evaluate_dict(node);
    case E::conditional:
    case E::logical_not:
    case E::logical_and:
    case E::logical_or: return evaluate_logical(node);
    case E::negative:
    case E::positive: {
      const Value value = evaluate(*node.children[0]);
      position = node.position;
      return negate(*this, value, node.kind == E::negative);
    }
    default: return evaluate_binary(node);
  }
}

Value Interpreter::evaluate_name(const std::string& name) {
  for (const Scope* scope = scope_.get(); scope; scope = scope->outer.get()) {
    const auto found = scope->variables.find(name);
    if (found != scope->variables.end()) return found->second;
  }
  if (const Value* given = variables_.find(name)) return *given;
  Value global = find_global(name);
  if (!global.is(Kind::missing)) return global;
  return Value::undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::evaluate_logical(const Expression& node) {
  Value first = evaluate(*node.children[0]);
  const bool holds = truth(first);
  switch (node.kind) {
    case E::logical_not: return Value(!holds);
    case E::logical_and: return holds ? evaluate(*node.children[1]) : first;
    case E::logical_or: return holds ? first : evaluate(*node.children[1]);
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
  position = node.position;
  return sliced(*this, parts[0], parts[1], parts[2], parts[3]);
}

Value Interpreter::evaluate_dict(const Expression& node) {
  const auto made = std::make_shared<Dict>();
  for (size_t i = 0; i < node.children.size(); i += 2) {
    const Value key = evaluate(*node.children[i]);
    Value value = evaluate(*node.children[i + 1]);
    position = node.position;
    made->set(*this, key, std::move(value));
  }
  return Value(std::shared_ptr<const Dict>(made));
}

Value Interpreter::evaluate_binary(const Expression& node) {
  const Value a = evaluate(*node.children[0]), b = evaluate(*node.children[1]);
  position = node.position;
  switch (node.kind) {
    case E::equal: return Value(equal(*this, a, b));
    case E::not_equal: return Value(!equal(*this, a, b));
    case E::less: return Value(less(*this, a, b));
    case E::less_equal: return Value(less_equal(*this, a, b));
    case E::greater: return Value(less(*this, b, a, ">"));
    case E::greater_equal: return Value(less_equal(*this, b, a, ">="));
    case E::in: return Value(contains(*this, b, a));
    case E::not_in: return Value(!contains(*this, b, a));
    case E::concat: {
      std::string text = to_text(*this, a);
      append_text(*this, text, b);
      bytes(text.size());
      return Value(std::move(text));
    }
    default: return apply(*this, node.kind, a, b);
  }
}

// Evaluates the arguments of a call, a filter or a test: the children after the first, the keywords
// and *arguments.
Arguments Interpreter::evaluate_arguments(const Expression& node) {
  Arguments arguments;
  for (size_t i = 1; i < node.children.size(); ++i) {
    arguments.positional.push_back(evaluate(*node.children[i]));
  }
  for (const auto& [key, value] : node.keywords) {
    arguments.named.emplace_back(key, evaluate(*value));
  }
  if (node.star) {
    const Values more = to_list(*this, evaluate(*node.star));
    arguments.positional.insert(arguments.positional.end(), more.begin(), more.end());
  }
  return arguments;
}

Value Interpreter::evaluate_call(const Expression& node) {
  const Expression& called = *node.children[0];
  Value callee;
  if (called.kind == E::attribute) {
    const Value value = evaluate(*called.children[0]);
    position = called.position;
    callee = attribute(value, called.name);
    if (callee.is_undefined() && (value.is(Kind::string) || value.is(Kind::sequence))) {
      unsupported("the method {}.{} is not supported", type_name(value), called.name);
    }
  } else {
    callee = evaluate(called);
  }
  Arguments arguments = evaluate_arguments(node);
  position = node.position;
  return call(callee, std::move(arguments));
}

Value Interpreter::evaluate_filter(const Expression& node) {
  Value subject = node.children[0] ? evaluate(*node.children[0]) : *block_text_;
  Arguments arguments = evaluate_arguments(node);
  arguments.positional.insert(arguments.positional.begin(), std::move(subject));
  position = node.position;
  return node.kind == E::filter ? filter(node.name, std::move(arguments))
                                : test(node.name, std::move(arguments));
}

Value Interpreter::filter(std::string_view name, Arguments&& arguments) {
  const Builtin* const found = find_filter(name);
  if (!found) unsupported("filter '{}' is not supported", name);
  Bound bound(*this, *found, std::move(arguments));
  return found->call(*this, bound);
}

Value Interpreter::test(std::string_view name, Arguments&& arguments) {
  const Builtin* const found = find_test(name);
  if (!found) unsupported("test '{}' is not supported", name);
  Bound bound(*this, *found, std::move(arguments));
  return found->call(*this, bound);
}

namespace {

// Returns an attribute of an object or a method of plain data; missing if there is none.
Value own_attribute(Interpreter& interpreter, const Value& value, std::string_view name) {
  if (name.starts_with("__") && name.ends_with("__")) {
    interpreter.fail("access to attribute '{}' of '{}' object is unsafe", name, type_name(value));
  }
  return value.is(Kind::object) ? value.object().attribute(interpreter, name)
                                : find_method(value, name);
}

Value no_attribute(const Value& value, std::string_view name) {
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_type(value), name));
}

}  // namespace

Value Interpreter::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) fail("{}", value.message());
  Value found = own_attribute(*this, value, name);
  if (!found.is(Kind::missing)) return found;
  const Value* entry = value.is(Kind::dict) ? value.dict().find(name) : nullptr;
  return entry ? *entry : no_attribute(value, name);
}

Value Interpreter::item(const Value& value, const Value& index) {
  if (value.is_undefined()) fail("{}", value.message());
  if (value.is(Kind::dict)) {
    if (const Value* entry = value.dict().find(index)) return *entry;
  } else if (index.is_integral()) {
    Value found = element(*this, value, index.integer());
    if (!found.is(Kind::missing)) return found;
  }
  if (!index.is(Kind::string)) {
    return Value::undefined(
        fmt::format("{} has no element {}", object_type(value), repr(*this, index)));
  }
  Value found = own_attribute(*this, value, index.bytes());
  return found.is(Kind::missing) ? no_attribute(value, index.bytes()) : found;
}

Value Interpreter::call(const Value& callee, Arguments&& arguments) {
  if (callee.is_undefined()) fail("{}", callee.message());
  if (!callee.is(Kind::object) || !callee.object().callable()) {
    fail("'{}' object is not callable", type_name(callee));
  }
  const Level guard(depth_);
  check_depth();
  return callee.object().call(*this, std::move(arguments));
}

}  // namespace fovea::text::jinja
