#include <algorithm>

#include "jinja/filters.h"
#include "jinja/interpreter.h"
#include "jinja/loop.h"
#include "jinja/macro.h"

namespace fovea::jinja {

Interpreter::Interpreter(const ChatTemplate::Program& program,
                         std::shared_ptr<const Dict> variables, const RenderLimits& limits,
                         const std::function<std::tm()>& now)
    : Runtime(program.name, limits),
      program_(program),
      variables_(std::move(variables)),
      now_(now) {}

// Values that hold one another in a circle would stay: every circle goes through a namespace or an
// activation.
Interpreter::~Interpreter() {
  for (const auto& each : namespaces_) each->values = nullptr;
  for (Activation& each : kept_) std::fill(each.slots.begin(), each.slots.end(), Value());
}

ChatTemplate::Result Interpreter::run() {
  ChatTemplate::Result result;
  out_ = &result.text;
  activation_ = &kept_.emplace_back(Activation{nullptr, {}});
  activation_->slots.resize(static_cast<size_t>(program_.root.slots));
  enter(program_.root.scope);
  execute(program_.body);
  if (!program_.untraceable) result.assistant = std::move(assistant_);
  return result;
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

Value& Interpreter::variable(Slot slot) {
  Activation* at = activation_;
  for (int up = slot.up; up > 0; --up) at = at->outer;
  return at->slots[static_cast<size_t>(slot.index)];
}

void Interpreter::enter(const Scope& scope) {
  step(scope.loads.size() / 4);
  for (const Load& load : scope.loads) {
    Value value;
    if (load.kind == Load::Kind::alias) {
      value = variable(load.source);
    } else if (load.kind == Load::Kind::resolve) {
      const Value* given = variables_->find(load.name);
      value = given ? *given : find_global(load.name);
    }
    activation_->slots[static_cast<size_t>(load.target)] = std::move(value);
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const Load& load : scope.loads) {
    activation_->slots[static_cast<size_t>(load.target)] = Value();
  }
}

void Interpreter::write(std::string_view text) {
  if (text.size() > limits().output_bytes - std::min(out_->size(), limits().output_bytes)) {
    bytes(out_->size() + text.size());
  }
  bytes(text.size());
  out_->append(text);
}

void Interpreter::write(const Value& value) {
  if (value.is(Kind::string)) return write(value.bytes());
  write(to_text(*this, value));
}

Flow Interpreter::execute(const Body& body) {
  const Deeper deeper(*this);
  for (const Statement& node : body) {
    step();
    place = node.place;
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
    case StatementKind::set: set(node); break;
    case StatementKind::set_block: return set_block(node);
    case StatementKind::macro: define_macro(node); break;
    case StatementKind::call: call_block(node); break;
    case StatementKind::filter: return filter_block(node);
    case StatementKind::with: return with(node);
    case StatementKind::generation: generation(node); break;
    case StatementKind::leave: return Flow::leave;
    case StatementKind::next: return Flow::next;
  }
  return Flow::on;
}

Flow Interpreter::choose(const Statement& node) {
  for (const Branch& branch : node.branches) {
    if (!branch.test || truth(*this, evaluate(*branch.test))) return execute(branch.body);
  }
  return Flow::on;
}

Flow Interpreter::loop(const Statement& node) {
  const Value over = evaluate(*node.value);
  place = node.place;
  Value filtered = over;
  if (node.condition) filtered = condition_iterator(*this, *node.condition, activation_, over);
  std::shared_ptr<Loop> loop = std::make_shared<Loop>(*this, filtered);
  if (node.loop_slot >= 0)
    activation_->slots[static_cast<size_t>(node.loop_slot)] =
        Value(std::static_pointer_cast<Object>(loop));
  bool completed = false;  // as in Jinja, a body that ends with continue does not count
  for (Value item; loop->advance(*this, item);) {
    step();
    assign(*node.target, item);
    enter(node.scope);
    const Flow flow = execute(node.body);
    if (flow == Flow::leave) break;
    if (flow == Flow::on) completed = true;
  }
  leave(node.scope);
  if (completed || node.otherwise.empty()) return Flow::on;
  enter(node.otherwise_scope);
  const Flow flow = execute(node.otherwise);
  leave(node.otherwise_scope);
  return flow;
}

void Interpreter::set(const Statement& node) {
  check_references(*node.target);
  const Value value = evaluate(*node.value);
  place = node.place;
  assign(*node.target, value);
}

void Interpreter::assign(const Expression& target, const Value& value) {
  if (target.kind == ExpressionKind::name) {
    variable(target.slot) = value;
    return;
  }
  if (target.kind == ExpressionKind::reference) {
    if (target.name.starts_with('_')) {
      fail("the attribute {} of a namespace; expected a name without an underscore in front",
           target.name);
    }
    const auto space = variable(target.children[0]->slot).as<Namespace>();
    space->values->set(*this, Value(target.name), value);
    return;
  }
  const Values items = to_list(*this, value);
  if (items.size() != target.children.size()) {
    fail("{} values to unpack; expected {}", items.size(), target.children.size());
  }
  for (size_t i = 0; i < items.size(); ++i) assign(*target.children[i], items[i]);
}

void Interpreter::check_references(const Expression& target) {
  if (target.kind == ExpressionKind::tuple) {
    for (const auto& child : target.children) check_references(*child);
  } else if (target.kind == ExpressionKind::reference &&
             !variable(target.children[0]->slot).as<Namespace>()) {
    fail("cannot assign attribute on non-namespace object");
  }
}

Flow Interpreter::buffered(const Body& body, std::string& text) {
  std::string* const outer = std::exchange(out_, &text);
  const Flow flow = execute(body);
  out_ = outer;
  return flow;
}

Flow Interpreter::set_block(const Statement& node) {
  enter(node.scope);
  std::string text;
  if (const Flow flow = buffered(node.body, text); flow != Flow::on) return flow;
  place = node.place;
  Value value(std::move(text));
  if (node.value) {
    block_text_ = &value;
    value = evaluate(*node.value);
  }
  place = node.place;
  check_references(*node.target);
  assign(*node.target, value);
  leave(node.scope);
  return Flow::on;
}

Flow Interpreter::filter_block(const Statement& node) {
  enter(node.scope);
  std::string text;
  if (const Flow flow = buffered(node.body, text); flow != Flow::on) return flow;
  const Value value(std::move(text));
  block_text_ = &value;
  write(evaluate(*node.value));
  leave(node.scope);
  return Flow::on;
}

Flow Interpreter::with(const Statement& node) {
  enter(node.scope);
  for (size_t i = 0; i < node.targets.size(); ++i) {
    assign(*node.targets[i], evaluate(*node.values[i]));
  }
  const Flow flow = execute(node.body);
  leave(node.scope);
  return flow;
}

void Interpreter::define_macro(const Statement& node) {
  assign(*node.target, make_macro(node, activation_));
}

void Interpreter::call_block(const Statement& node) {
  const Expression& called = *node.value;
  const Value callee = evaluate(*called.children[0]);
  Arguments arguments = evaluate_arguments(called, {});
  arguments.named.emplace_back("caller", make_macro(node, activation_));
  place = node.place;
  write(call(callee, std::move(arguments)));
}

// A function of its own, as in transformers: what it sets stays inside.
void Interpreter::generation(const Statement& node) {
  const size_t begin = out_->size();
  const Value text = invoke(*node.function, node.body, activation_, {});
  write(text);
  if (node.known_place) assistant_.push_back({begin, out_->size()});
}

Activation* Interpreter::activate(const Function& function, Activation* outer) {
  Activation* made = &kept_.emplace_back(Activation{outer, {}});
  made->slots.resize(static_cast<size_t>(function.slots));
  return made;
}

void Interpreter::enter_in(Activation& activation, const Scope& scope) {
  Activation* const before = std::exchange(activation_, &activation);
  enter(scope);
  activation_ = before;
}

Value Interpreter::evaluate_in(Activation& activation, const Expression& node) {
  Activation* const before = std::exchange(activation_, &activation);
  Value value = evaluate(node);
  activation_ = before;
  return value;
}

void Interpreter::assign_in(Activation& activation, const Expression& target, const Value& value) {
  Activation* const before = std::exchange(activation_, &activation);
  assign(target, value);
  activation_ = before;
}

// The text that a function's body renders.
Value Interpreter::invoke(const Function& function, const Body& body, Activation* outer,
                          const std::function<void(Activation&)>& fill) {
  if (calls_ == limits().calls) {
    fail("macros call one another too deeply; expected at most {} calls", limits().calls);
  }
  const Position from = place;
  ++calls_;
  step(static_cast<size_t>(function.slots) / 4);
  Activation own{outer, {}};
  Activation* const made = function.captured ? activate(function, outer) : &own;
  made->slots.resize(static_cast<size_t>(function.slots));
  Activation* const before = std::exchange(activation_, made);
  enter(function.scope);
  if (fill) fill(*made);
  std::string text;
  buffered(body, text);
  activation_ = before;
  --calls_;
  place = from;
  return Value(std::move(text));
}

}  // namespace fovea::jinja
