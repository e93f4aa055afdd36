// Jinja's rules of scope (its idtracking.py), on slots instead of Python's local variables. Loops,
// blocks and macros have scopes, conditions have none. A scope that only reads a name shares the
// outer variable; one that also sets it has its own, which starts with the outer value. What no
// scope sets is looked up among the template's variables when its scope is entered.

#include "jinja/scope.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "jinja/filters.h"
#include "jinja/lexer.h"

namespace fovea::jinja {
namespace {

// A function while its slots are handed out. Scopes of the same level share a name's slot.
struct FunctionScope {
  Function* function;
  FunctionScope* outer;
  std::map<std::pair<int, std::string>, int> slots;

  int slot(int level, const std::string& name) {
    const auto [entry, is_new] = slots.emplace(std::pair(level, name), function->slots);
    if (is_new) ++function->slots;
    return entry->second;
  }
};

struct Variable {
  FunctionScope* function;
  int index;
};

// The names of one scope. A branch of a condition is looked at as an overlay of its scope.
class Symbols {
 public:
  Symbols(FunctionScope* function, const Symbols* parent)
      : function_(function), parent_(parent), level_(parent ? parent->level_ + 1 : 0) {}

  Symbols branch() const {
    Symbols overlay(function_, parent_);
    overlay.level_ = level_;
    overlay.base_ = this;
    return overlay;
  }

  std::optional<Variable> find(const std::string& name) const {
    if (const auto own = find_own(name)) return own;
    return parent_ ? parent_->find(name) : std::nullopt;
  }

  void load(const std::string& name) {
    if (!find(name)) define(name, Load{.kind = Load::Kind::resolve, .name = name});
  }

  void store(const std::string& name) {
    stores_.insert(name);
    if (find_own(name)) return;
    const auto outer = parent_ ? parent_->find(name) : std::nullopt;
    if (outer) {
      define(name, alias(*outer));
    } else {
      define(name, Load{.kind = Load::Kind::undefined});
    }
  }

  int declare(const std::string& name) {  // a parameter: set by the statement
    stores_.insert(name);
    return define(name, std::nullopt);
  }

  void merge(const std::vector<Symbols>& branches) {
    std::set<std::string> stores;
    for (const Symbols& branch : branches) {
      for (const std::string& name : branch.stores_) {
        if (!stored(name)) stores.insert(name);
      }
    }
    for (const Symbols& branch : branches) {
      for (const auto& [name, index] : branch.refs_) refs_[name] = index;
      for (const auto& [index, load] : branch.loads_) loads_[index] = load;
      stores_.insert(branch.stores_.begin(), branch.stores_.end());
    }
    // Set in some branch only: before, it is what it is outside.
    for (const std::string& name : stores) {
      const auto outer = parent_ ? parent_->find(name) : std::nullopt;
      const int target = find_own(name)->index;
      loads_[target] = outer ? alias(*outer) : Load{.kind = Load::Kind::resolve, .name = name};
    }
  }

  FunctionScope* function() const { return function_; }

  Scope scope() const {
    Scope result;
    for (const auto& [index, load] : loads_) {
      if (!load) continue;
      result.loads.push_back(*load);
      result.loads.back().target = index;
    }
    return result;
  }

  // A variable as seen from this scope's function.
  Slot slot_of(const Variable& variable) const {
    Slot slot{0, variable.index};
    for (const FunctionScope* at = function_; at != variable.function; at = at->outer) ++slot.up;
    return slot;
  }

 private:
  std::optional<Variable> find_own(const std::string& name) const {
    for (const Symbols* at = this; at; at = at->base_) {
      const auto found = at->refs_.find(name);
      if (found != at->refs_.end()) return Variable{function_, found->second};
    }
    return std::nullopt;
  }

  bool stored(const std::string& name) const {
    for (const Symbols* at = this; at; at = at->base_) {
      if (at->stores_.contains(name)) return true;
    }
    return false;
  }

  int define(const std::string& name, std::optional<Load> load) {
    const int index = function_->slot(level_, name);
    refs_[name] = index;
    loads_[index] = std::move(load);
    return index;
  }

  Load alias(const Variable& outer) const {
    return Load{.kind = Load::Kind::alias, .source = slot_of(outer)};
  }

  FunctionScope* function_;
  const Symbols* parent_;
  const Symbols* base_ = nullptr;
  int level_;
  std::map<std::string, int> refs_;
  std::map<int, std::optional<Load>> loads_;  // nothing for parameters
  std::set<std::string> stores_;
};

// Every expression directly within another.
void each_child(const Expression& node, auto&& visit) {
  const auto give = [&](const ExpressionPointer& child) {
    if (child) visit(*child);
  };
  for (const auto& child : node.children) give(child);
  for (const auto& [key, value] : node.keywords) give(value);
  give(node.star);
  give(node.double_star);
}

void note_reads(const Expression& node, Symbols& symbols) {
  if (node.kind == ExpressionKind::name) return symbols.load(node.name);
  each_child(node, [&](const Expression& child) { note_reads(child, symbols); });
}

void note_reads(const ExpressionPointer& node, Symbols& symbols) {
  if (node) note_reads(*node, symbols);
}

void note_target(const Expression& node, Symbols& symbols, bool parameter) {
  if (node.kind == ExpressionKind::tuple) {
    for (const auto& child : node.children) note_target(*child, symbols, parameter);
  } else if (node.kind == ExpressionKind::reference) {
    symbols.load(node.children[0]->name);
  } else if (parameter) {
    symbols.declare(node.name);
  } else {
    symbols.store(node.name);
  }
}

void note(const Body& body, Symbols& symbols);

void note_choice(const std::vector<Branch>& branches, size_t from, Symbols& symbols) {
  std::vector<Symbols> seen;
  note_reads(branches[from].test, symbols);
  seen.push_back(symbols.branch());
  note(branches[from].body, seen.back());
  if (from == 0) {
    Symbols elifs = symbols.branch();
    size_t next = 1;
    for (; next < branches.size() && branches[next].test; ++next) {
      const std::vector<Symbols> one = [&] {
        note_reads(branches[next].test, elifs);
        std::vector<Symbols> body = {elifs.branch()};
        note(branches[next].body, body.back());
        return body;
      }();
      elifs.merge(one);
    }
    seen.push_back(std::move(elifs));
    seen.push_back(symbols.branch());
    if (next < branches.size()) note(branches[next].body, seen.back());
  }
  symbols.merge(seen);
}

void note(const Statement& node, Symbols& symbols) {
  switch (node.kind) {
    case StatementKind::choice: return note_choice(node.branches, 0, symbols);
    case StatementKind::macro: return symbols.store(node.target->name);
    case StatementKind::set:
      note_reads(node.value, symbols);
      return note_target(*node.target, symbols, false);
    case StatementKind::set_block: return note_target(*node.target, symbols, false);
    case StatementKind::with:
      for (const auto& value : node.values) note_reads(value, symbols);
      return;
    default: return note_reads(node.value, symbols);
  }
}

void note(const Body& body, Symbols& symbols) {
  for (const Statement& node : body) note(node, symbols);
}

// Whether a body reads a name that it did not set before: decides if a loop has its `loop`, a macro
// its `caller`. In the order in which Jinja walks, a target is set before its value is read.
class Undeclared {
 public:
  explicit Undeclared(std::string name) : name_(std::move(name)) {}
  bool in(const Body& body) {
    for (const Statement& node : body) visit(node);
    return found_;
  }

 private:
  void target(const ExpressionPointer& node) {
    if (!node) return;
    if (node->kind == ExpressionKind::name && node->name == name_) declared_ = true;
    if (node->kind == ExpressionKind::tuple) {
      for (const auto& child : node->children) target(child);
    }
  }
  void read(const ExpressionPointer& node) {
    if (node) read(*node);
  }
  void read(const Expression& node) {
    if (node.kind == ExpressionKind::name && node.name == name_ && !declared_) found_ = true;
    each_child(node, [&](const Expression& child) { read(child); });
  }
  void function(const Function& function) {
    if (std::count(function.parameters.begin(), function.parameters.end(), name_)) declared_ = true;
    for (const auto& value : function.defaults) read(value);
  }
  void visit(const Statement& node) {
    if (node.kind == StatementKind::call) read(node.value);
    if (node.kind != StatementKind::macro) target(node.target);
    if (node.kind != StatementKind::filter && node.kind != StatementKind::call) read(node.value);
    for (const auto& each : node.targets) target(each);
    for (const auto& each : node.values) read(each);
    for (const Branch& branch : node.branches) {
      read(branch.test);
      in(branch.body);
    }
    if (node.function) function(*node.function);
    in(node.body);
    if (node.kind == StatementKind::filter) read(node.value);
    in(node.otherwise);
    if (node.condition) read(node.condition->test);
  }

  std::string name_;
  bool declared_ = false, found_ = false;
};

class Resolver {
 public:
  explicit Resolver(ChatTemplate::Program& program) : program_(program) {}

  void run() {
    FunctionScope function{&program_.root, nullptr, {}};
    Symbols symbols(&function, nullptr);
    note(program_.body, symbols);
    program_.root.scope = symbols.scope();
    body(program_.body, symbols, {.direct = true});
  }

 private:
  // `soft`: a condition may keep it from running, so an unknown filter is not an error yet.
  // `direct`: what is rendered goes straight to the template's text.
  struct Context {
    bool soft = false, direct = false;
  };

  [[noreturn]] void refuse(Position place, const std::string& what, ErrorKind kind) const {
    refuse_source(kind, program_.name, place, what);
  }

  void body(Body& body, const Symbols& symbols, Context context) {
    for (Statement& node : body) statement(node, symbols, context);
  }

  void expression(const ExpressionPointer& node, const Symbols& symbols, bool soft) {
    if (!node) return;
    if (node->kind == ExpressionKind::name) node->slot = symbols.slot_of(*symbols.find(node->name));
    if (node->kind == ExpressionKind::filter || node->kind == ExpressionKind::test) {
      const bool filter = node->kind == ExpressionKind::filter;
      const Known known = filter ? know_filter(node->name) : know_test(node->name);
      if (known != Known::yes && !soft) refuse_unknown(*node, known);
    }
    const bool inner = soft || node->kind == ExpressionKind::conditional;
    for (const auto& child : node->children) expression(child, symbols, inner);
    for (const auto& [key, value] : node->keywords) expression(value, symbols, inner);
    expression(node->star, symbols, inner);
    expression(node->double_star, symbols, inner);
  }

  [[noreturn]] void refuse_unknown(const Expression& node, Known known) const {
    const std::string_view what = node.kind == ExpressionKind::filter ? "filter" : "test";
    if (known == Known::refused) {
      refuse(node.place, fmt::format("the {} {} is not supported", what, node.name),
             ErrorKind::Unsupported);
    }
    refuse(node.place, fmt::format("unknown {} {}", what, node.name), ErrorKind::BadFile);
  }

  void statement(Statement& node, const Symbols& symbols, Context context) {
    switch (node.kind) {
      case StatementKind::choice:
        for (Branch& branch : node.branches) {
          expression(branch.test, symbols, true);
          body(branch.body, symbols, {true, context.direct});
        }
        return;
      case StatementKind::loop: return loop(node, symbols, context);
      case StatementKind::set_block:
      case StatementKind::filter: return block(node, symbols, context);
      case StatementKind::with: return with(node, symbols, context);
      case StatementKind::macro:
      case StatementKind::call:
      case StatementKind::generation: return function(node, symbols, context);
      default:
        expression(node.target, symbols, context.soft);
        expression(node.value, symbols, context.soft);
    }
  }

  void loop(Statement& node, const Symbols& symbols, Context context) {
    check_loop_name(node.target);
    check_loop_name(node.body);
    check_loop_name(node.otherwise);
    expression(node.value, symbols, context.soft);
    Symbols inner(symbols.function(), &symbols);
    if (Undeclared("loop").in(node.body)) node.loop_slot = inner.declare("loop");
    note_target(*node.target, inner, true);
    note(node.body, inner);
    node.scope = inner.scope();
    if (node.condition) condition(node, symbols);
    expression(node.target, inner, false);
    body(node.body, inner, {false, context.direct});
    Symbols otherwise(symbols.function(), &symbols);
    note(node.otherwise, otherwise);
    node.otherwise_scope = otherwise.scope();
    body(node.otherwise, otherwise, {false, context.direct});
  }

  // The target is the loop's own one, but in slots of the condition's function.
  void condition(Statement& node, const Symbols& symbols) {
    Condition& condition = *node.condition;
    symbols.function()->function->captured = true;  // an iterator may be read later
    FunctionScope function{&condition.function, symbols.function(), {}};
    Symbols inner(&function, &symbols);
    condition.target = copy_of(*node.target);
    note_target(*condition.target, inner, true);
    note_reads(condition.test, inner);
    condition.function.scope = inner.scope();
    expression(condition.target, inner, false);
    expression(condition.test, inner, false);
  }

  static ExpressionPointer copy_of(const Expression& target) {
    auto copy = std::make_unique<Expression>();
    copy->kind = target.kind;
    copy->place = target.place;
    copy->name = target.name;
    for (const auto& child : target.children) copy->children.push_back(copy_of(*child));
    return copy;
  }

  void check_loop_name(const ExpressionPointer& target) const {
    if (!target) return;
    if (target->kind == ExpressionKind::name && target->name == "loop") {
      refuse(target->place, "the variable loop cannot be assigned to in a loop",
             ErrorKind::BadFile);
    }
    if (target->kind != ExpressionKind::tuple) return;
    for (const auto& child : target->children) check_loop_name(child);
  }
  void check_loop_name(const Body& body) const {
    for (const Statement& node : body) {
      if (node.kind == StatementKind::loop) continue;  // looks for itself
      if (node.kind != StatementKind::macro) check_loop_name(node.target);
      for (const Branch& branch : node.branches) check_loop_name(branch.body);
      check_loop_name(node.body);
    }
  }

  // {% set %} and {% filter %} blocks.
  void block(Statement& node, const Symbols& symbols, Context context) {
    Symbols inner(symbols.function(), &symbols);
    note(node.body, inner);
    if (node.kind == StatementKind::filter) note_reads(node.value, inner);
    // Jinja does not look into the filter of a set block; what it needs must have been seen.
    if (node.kind == StatementKind::set_block) note_reads(node.value, inner);
    node.scope = inner.scope();
    body(node.body, inner, {});
    expression(node.value, inner, false);
    expression(node.target, symbols, context.soft);
  }

  void with(Statement& node, const Symbols& symbols, Context context) {
    Symbols inner(symbols.function(), &symbols);
    for (const auto& target : node.targets) note_target(*target, inner, true);
    note(node.body, inner);
    node.scope = inner.scope();
    for (const auto& target : node.targets) expression(target, inner, false);
    for (const auto& value : node.values) expression(value, symbols, context.soft);
    body(node.body, inner, {false, context.direct});
  }

  void function(Statement& node, const Symbols& symbols, Context context) {
    Function& function = *node.function;
    symbols.function()->function->captured = true;
    FunctionScope scope{&function, symbols.function(), {}};
    Symbols inner(&scope, &symbols);
    for (const std::string& name : function.parameters) {
      function.parameter_slots.push_back(inner.declare(name));
    }
    for (const auto& value : function.defaults) note_reads(value, inner);
    note(node.body, inner);
    declare_specials(node, inner);
    function.scope = inner.scope();
    for (const auto& value : function.defaults) expression(value, inner, false);
    if (node.kind == StatementKind::generation) {
      node.known_place = context.direct;
      if (!context.direct) program_.untraceable = true;
    }
    const bool direct = node.kind == StatementKind::generation && context.direct;
    body(node.body, inner, {false, direct});
    // The macro itself, and the call of a call block, are the outer scope's.
    expression(node.target, symbols, context.soft);
    expression(node.value, symbols, context.soft);
  }

  void declare_specials(const Statement& node, Symbols& inner) const {
    Function& function = *node.function;
    const auto& names = function.parameters;
    const auto explicitly = [&](std::string_view name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (Undeclared("caller").in(node.body)) {
      const auto without_default = names.end() - static_cast<ptrdiff_t>(function.defaults.size());
      if (std::find(names.begin(), without_default, "caller") != without_default)
        refuse(node.place, "the parameter caller must have a default", ErrorKind::BadFile);
      function.caller = inner.declare("caller");
    }
    if (Undeclared("kwargs").in(node.body) && !explicitly("kwargs")) {
      function.kwargs = inner.declare("kwargs");
    }
    if (Undeclared("varargs").in(node.body) && !explicitly("varargs")) {
      function.varargs = inner.declare("varargs");
    }
  }

  ChatTemplate::Program& program_;
};

}  // namespace

void resolve(ChatTemplate::Program& program) { Resolver(program).run(); }

}  // namespace fovea::jinja
