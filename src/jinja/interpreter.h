#pragma once

#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/syntax.h"

namespace fovea::jinja {

// The variables of one call of a function.
struct Activation {
  Activation* outer;
  std::vector<Value> slots;
};

enum class Flow {
  on,
  leave,
  next
};  // after a statement: continue with the next one, break, continue the loop

// What changes while a template runs and may refer to itself; emptied at the end.
class Namespace : public Object {
 public:
  std::string type() const override { return "Namespace"; }
  std::string repr(Runtime& runtime) const override;
  Value attribute(Interpreter&, std::string_view name) override;
  std::shared_ptr<Dict> values = std::make_shared<Dict>();
};

// Renders one template once.
class Interpreter : public Runtime {
 public:
  Interpreter(const ChatTemplate::Program& program, std::shared_ptr<const Dict> variables,
              const RenderLimits& limits, const std::function<std::tm()>& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  ChatTemplate::Result run();

  // For filters, methods and functions. x.name and x[index] are Jinja's: the other kind of access
  // is tried where the first finds nothing.
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& index);
  Value call(const Value& callee, Arguments&& arguments);
  Value filter(std::string_view name, Arguments&& arguments);
  Value test(std::string_view name, Arguments&& arguments);
  std::shared_ptr<Namespace> make_namespace();
  std::tm now() const;

  // For macros and conditions.
  Value invoke(const Function& function, const Body& body, Activation* outer,
               const std::function<void(Activation&)>& fill);
  Activation* activate(const Function& function, Activation* outer);
  Value evaluate_in(Activation& activation, const Expression& node);
  void assign_in(Activation& activation, const Expression& target, const Value& value);
  void enter_in(Activation& activation, const Scope& scope);

  // Around whatever recurses: the machine's stack is bounded.
  class Deeper;

 private:
  // execute.cc
  Flow execute(const Body& body);
  Flow execute(const Statement& node);
  Flow choose(const Statement& node);
  Flow loop(const Statement& node);
  Flow set_block(const Statement& node);
  Flow filter_block(const Statement& node);
  Flow with(const Statement& node);
  void set(const Statement& node);
  void define_macro(const Statement& node);
  void call_block(const Statement& node);
  void generation(const Statement& node);
  void assign(const Expression& target, const Value& value);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  void write(const Value& value);
  void write(std::string_view text);
  void check_references(const Expression& target);
  Value& variable(Slot slot);
  Flow buffered(const Body& body, std::string& text);

  // evaluate.cc
  Value evaluate(const Expression& node);
  Value evaluate_here(const Expression& node);
  Value evaluate_logical(const Expression& node);
  Value evaluate_name(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_concat(const Expression& node);
  Value evaluate_compare(const Expression& node);
  Value evaluate_filter(const Expression& node);
  bool compare(Comparison comparison, const Value& a, const Value& b);
  Values evaluate_all(const std::vector<ExpressionPointer>& nodes);
  Arguments evaluate_arguments(const Expression& node, Values positional);

  const ChatTemplate::Program& program_;
  std::shared_ptr<const Dict> variables_;
  const std::function<std::tm()>& now_;
  std::deque<Activation> kept_;  // those that a macro may still see
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  Activation* activation_ = nullptr;
  std::string* out_ = nullptr;
  const Value* block_text_ = nullptr;  // what the filter of a block is applied to
  std::vector<ChatTemplate::Span> assistant_;
  size_t calls_ = 0;
  int depth_ = 0;
};

constexpr int kEvaluationDepth = 1000;  // levels of the recursion, some hundred bytes each

class Interpreter::Deeper {
 public:
  explicit Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
    if (++interpreter.depth_ > kEvaluationDepth) {
      --interpreter.depth_;  // no destructor will
      interpreter.fail("the template runs too deep; expected at most {} levels", kEvaluationDepth);
    }
  }
  ~Deeper() { --interpreter_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Interpreter& interpreter_;
};

// range, namespace, raise_exception and so on; missing for what is none.
Value find_global(std::string_view name);

// Python's operators; arithmetic.cc.
Value apply(Runtime& runtime, ExpressionKind operation, const Value& a, const Value& b);
Value negate(Runtime& runtime, const Value& value, bool minus);
Value sliced(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
             const Value& step);
Value element(Runtime& runtime, const Value& value, int64_t index);  // missing beyond the ends

// A value as the integer that Python takes it for; fails for others.
int64_t index_of(Runtime& runtime, const Value& value, std::string_view what);

// How a type's attribute of some name behaves; methods.cc.
enum class Method { none, callable, changes, refused };
Method know_method(const Value& value, std::string_view name);
Value bound_method(const Value& self, std::string_view name);

}  // namespace fovea::jinja
