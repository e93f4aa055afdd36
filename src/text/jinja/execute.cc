#include <algorithm>

#include "jinja/interpreter.h"

namespace fovea::text::jinja {

Interpreter::Interpreter(const ChatTemplate::Program& program, const Dict& variables,
                         const RenderLimits& limits, const std::function<std::tm()>& now)
    : Runtime(program.name, limits), program_(program), variables_(variables), now_(now) {}

// Breaks reference cycles, whose values would otherwise not be freed. Each cycle contains a
// namespace or a captured scope.
Interpreter::~Interpreter() {
  for (const auto& each : namespaces_) each->values = nullptr;
  for (const ScopePointer& each : captured_) each->variables.clear();
}

ChatTemplate::Result Interpreter::run() {
  result_.assistant.emplace();
  execute(program_.body);
  return std::move(result_);
}

std::tm Interpreter::now() const {
  if (now_) return now_();
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local;
}

std::shared_ptr<Namespace> Interpreter::make_namespace() {
  return namespaces_.emplace_back(std::make_shared<Namespace>());
}

void Interpreter::write(std::string_view text) {
  if (out_->size() + text.size() > limits().output_bytes) bytes(out_->size() + text.size());
  bytes(text.size());
  out_->append(text);
}

void Interpreter::write(const Value& value) {
  if (value.is(Kind::string)) return write(value.bytes());
  write(to_text(*this, value));
}

Flow Interpreter::execute(const Body& body) {
  const Level guard(depth_);
  check_depth();
  for (const Statement& node : body) {
    step();
    position = node.position;
    if (const Flow flow = execute(node); flow != Flow::on) return flow;
  }
  return Flow::on;
}

Flow Interpreter::execute(const Statement& node) {
  switch (node.kind) {
    case StatementKind::text: write(node.name); break;
    case StatementKind::output: write(evaluate(*node.value)); break;
    case StatementKind::choice: return choose(node);
    case StatementKind::loop: return loop(node);
    case StatementKind::set: assign(*node.target, evaluate(*node.value)); break;
    case StatementKind::set_block:
    case StatementKind::filter: return block(node);
    case StatementKind::macro: scope_->variables[node.name] = make_macro(node); break;
    case StatementKind::call: call_block(node); break;
    case StatementKind::generation: generation(node); break;
    case StatementKind::leave: return Flow::leave;
    case StatementKind::next: return Flow::next;
  }
  return Flow::on;
}

Flow Interpreter::choose(const Statement& node) {
  for (const Branch& branch : node.branches) {
    if (!branch.test || truth(evaluate(*branch.test))) return execute(branch.body);
  }
  return Flow::on;
}

Flow Interpreter::in_new_scope(const Body& body) {
  const ScopePointer outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{outer, {}});
  const Flow flow = execute(body);
  scope_ = outer;
  return flow;
}

// Evaluates the condition of a loop in a separate scope, in which outer variables have their
// current values.
bool Interpreter::meets_condition(const Statement& loop, const ScopePointer& outer,
                                  const Value& item) {
  const Position from = position;
  const ScopePointer current = std::exchange(scope_, std::make_shared<Scope>(Scope{outer, {}}));
  assign(*loop.target, item);
  const bool holds = truth(evaluate(*loop.test));
  scope_ = current;
  position = from;
  return holds;
}

namespace {

// The items of a loop, and its `loop` variable.
class Loop : public Object {
 public:
  // `accepts` is the condition of the loop, evaluated when an item is needed; empty if there is
  // none.
  Loop(Value items, std::function<bool(const Value&)> accepts)
      : items_(std::move(items)), accepts_(std::move(accepts)) {}

  bool advance(Value& item);

  std::string type() const override { return "LoopContext"; }
  Value attribute(Interpreter& interpreter, std::string_view name) override;
  int depth() const override { return 1 + items_.depth(); }

 private:
  bool peek();
  int64_t length(Interpreter& interpreter);

  Value items_;  // a sequence
  std::function<bool(const Value&)> accepts_;
  size_t at_ = 0;
  int64_t index_ = -1;
  bool testing_ = false;            // whether the condition is being evaluated
  Value before_, current_, after_;  // missing if there is none
};

bool Loop::peek() {
  while (after_.is(Kind::missing) && at_ < items_.items().size()) {
    const Value item = items_.items()[at_++];
    testing_ = true;
    if (!accepts_ || accepts_(item)) after_ = item;
    testing_ = false;
  }
  return !after_.is(Kind::missing);
}

bool Loop::advance(Value& item) {
  if (!peek()) return false;
  ++index_;
  before_ = std::exchange(current_, std::exchange(after_, Value()));
  item = current_;
  return true;
}

int64_t Loop::length(Interpreter& interpreter) {
  if (accepts_) {  // from here on, items_ has only items that meet the condition
    Values rest;
    for (; peek(); after_ = Value()) rest.push_back(after_);
    items_ = new_sequence(interpreter, std::move(rest));
    at_ = 0;
    accepts_ = nullptr;
  }
  const size_t rest = items_.items().size() - at_ + (after_.is(Kind::missing) ? 0 : 1);
  return index_ + 1 + static_cast<int64_t>(rest);
}

Value Loop::attribute(Interpreter& interpreter, std::string_view name) {
  if (testing_)
    interpreter.fail(
        "loop.{} is read by the condition of the loop; expected a condition without loop", name);
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(!peek());
  if (name == "length") return Value(length(interpreter));
  if (name == "revindex") return Value(length(interpreter) - index_);
  if (name == "revindex0") return Value(length(interpreter) - index_ - 1);
  if (name == "previtem") {
    return index_ == 0 ? Value::undefined("there is no previous item") : before_;
  }
  if (name == "nextitem") return peek() ? after_ : Value::undefined("there is no next item");
  if (name == "cycle" || name == "changed" || name == "depth" || name == "depth0") {
    interpreter.unsupported("loop.{} is not supported", name);
  }
  return Value();
}

}  // namespace

Flow Interpreter::loop(const Statement& node) {
  const Value over = evaluate(*node.value);
  position = node.position;
  std::function<bool(const Value&)> accepts;
  if (node.test) {
    captured_.push_back(scope_);
    accepts = [this, &node, outer = scope_](const Value& item) {
      return meets_condition(node, outer, item);
    };
  }
  const Value items = over.is(Kind::sequence) ? over : new_sequence(*this, to_list(*this, over));
  const auto loop = std::make_shared<Loop>(items, accepts);
  const ScopePointer outer = scope_;
  bool completed = false;  // as in Jinja, an iteration that ends with continue does not count
  for (Value item; loop->advance(item);) {
    step();
    scope_ = std::make_shared<Scope>(Scope{outer, {}});
    scope_->variables["loop"] = Value(std::static_pointer_cast<Object>(loop));
    assign(*node.target, item);
    const Flow flow = execute(node.body);
    scope_ = outer;
    if (flow == Flow::leave) break;
    if (flow == Flow::on) completed = true;
  }
  return completed ? Flow::on : in_new_scope(node.otherwise);
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::name) {
    scope_->variables[target.name] = value;
    return;
  }
  if (target.kind == ExpressionKind::reference) {
    const Value holder = evaluate_name(target.children[0]->name);
    auto* const space = holder.as<Namespace>();
    if (!space) fail("cannot assign attribute on non-namespace object");
    if (target.name.starts_with('_')) {
      fail("the attribute {} of a namespace; expected a name that does not start with _",
           target.name);
    }
    space->values->set(*this, Value(target.name), value);
    return;
  }
  const Values items = to_list(*this, value);
  if (items.size() != target.children.size()) {
    fail("{} values to unpack; expected {}", items.size(), target.children.size());
  }
  for (size_t i = 0; i < items.size(); ++i) assign(*target.children[i], items[i]);
}

// Executes the blocks {% set x %} and {% filter x %}.
Flow Interpreter::block(const Statement& node) {
  std::string text;
  std::string* const outer = std::exchange(out_, &text);
  const Flow flow = in_new_scope(node.body);
  out_ = outer;
  if (flow != Flow::on) return flow;
  Value value(std::move(text));
  if (node.value) {
    block_text_ = &value;
    value = evaluate(*node.value);
  }
  position = node.position;
  if (node.kind == StatementKind::filter) {
    write(value);
  } else {
    assign(*node.target, value);
  }
  return Flow::on;
}

// Executes the block {% generation %}. As in transformers, variables that it sets are local. If its
// text is first written to the result of a macro or another block, its position is unknown and no
// positions are returned.
void Interpreter::generation(const Statement& node) {
  const bool known = out_ == &result_.text && result_.assistant;
  if (!known) result_.assistant.reset();
  const size_t span = known ? result_.assistant->size() : 0;
  if (known) result_.assistant->push_back({out_->size(), out_->size()});
  in_new_scope(node.body);
  if (known && result_.assistant) (*result_.assistant)[span].end = out_->size();
}

namespace {

class Macro : public Object {
 public:
  Macro(const Statement& node, ScopePointer outer) : node_(node), outer_(std::move(outer)) {}
  std::string type() const override { return "Macro"; }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Arguments&& arguments) override {
    return interpreter.invoke(node_, outer_, std::move(arguments));
  }

 private:
  const Statement& node_;
  ScopePointer outer_;
};

}  // namespace

Value Interpreter::make_macro(const Statement& node) {
  captured_.push_back(scope_);
  return Value(std::shared_ptr<Object>(std::make_shared<Macro>(node, scope_)));
}

void Interpreter::call_block(const Statement& node) {
  const Value callee = evaluate(*node.value->children[0]);
  Arguments arguments = evaluate_arguments(*node.value);
  arguments.named.emplace_back("caller", make_macro(node));
  position = node.position;
  write(call(callee, std::move(arguments)));
}

Value Interpreter::invoke(const Statement& macro, const ScopePointer& outer,
                          Arguments&& arguments) {
  if (calls_ == limits().calls) {
    fail("macros call one another too deeply; expected at most {} calls", limits().calls);
  }
  ++calls_;
  const Position from = position;
  const ScopePointer callers = std::exchange(scope_, std::make_shared<Scope>(Scope{outer, {}}));
  bind(macro.function, macro.name, arguments);
  std::string text;
  std::string* const outer_text = std::exchange(out_, &text);
  execute(macro.body);
  out_ = outer_text;
  scope_ = callers;
  position = from;
  --calls_;
  return Value(std::move(text));
}

// Sets the parameters of a macro: first the positional arguments, then the named ones, then the
// defaults.
void Interpreter::bind(const Function& function, std::string_view macro, Arguments& arguments) {
  const std::vector<std::string>& names = function.parameters;
  if (arguments.positional.size() > names.size()) {
    fail("macro '{}' takes at most {} arguments; {} were given", macro, names.size(),
         arguments.positional.size());
  }
  auto& variables = scope_->variables;
  step(names.size() / 4);
  for (const std::string& name : names) variables[name] = Value();
  if (function.uses_caller) variables["caller"] = Value::undefined("No caller defined");
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    variables[names[i]] = std::move(arguments.positional[i]);
  }
  for (auto& [name, value] : arguments.named) {
    const auto found = variables.find(name);
    const bool is_caller = name == "caller" && function.uses_caller;
    if (found == variables.end() || (!found->second.is(Kind::missing) && !is_caller)) {
      fail("macro '{}' takes no keyword argument '{}'", macro, name);
    }
    found->second = std::move(value);
  }
  const size_t required = names.size() - function.defaults.size();
  for (size_t i = 0; i < names.size(); ++i) {
    if (!variables[names[i]].is(Kind::missing)) continue;
    variables[names[i]] =
        i < required ? Value::undefined(fmt::format("parameter '{}' was not provided", names[i]))
                     : evaluate(*function.defaults[i - required]);
  }
}

}  // namespace fovea::text::jinja
