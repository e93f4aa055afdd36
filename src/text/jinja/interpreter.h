#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "jinja/syntax.h"

namespace fovea::text::jinja {

// Maximum levels of recursion; each takes a few hundred bytes of stack.
constexpr int kEvaluationDepth = 1000;

// The variables of the template, of one iteration of a loop, of a block or of one call of a macro.
struct Scope {
  std::shared_ptr<Scope> outer;
  std::unordered_map<std::string_view, Value> variables;  // keys point to the program
};
using ScopePointer = std::shared_ptr<Scope>;

enum class Flow { on, leave, next };  // after a statement: the next one, break, continue

// A namespace(), whose attributes can be assigned to.
class Namespace : public Object {
 public:
  std::string type() const override { return "Namespace"; }
  Value attribute(Interpreter&, std::string_view name) override;
  std::shared_ptr<Dict> values = std::make_shared<Dict>();
};

// Renders one template once.
class Interpreter : public Runtime {
 public:
  Interpreter(const ChatTemplate::Program& program, const Dict& variables,
              const RenderLimits& limits, const std::function<std::tm()>& now);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  ChatTemplate::Result run();

  // Filters, methods and global functions also call these functions. attribute() and item()
  // evaluate x.name and x[index] as in Jinja: if one kind of access finds nothing, the other is
  // tried.
  Value attribute(const Value& value, std::string_view name);
  Value item(const Value& value, const Value& index);
  Value call(const Value& callee, Arguments&& arguments);
  Value filter(std::string_view name, Arguments&& arguments);
  Value test(std::string_view name, Arguments&& arguments);
  std::shared_ptr<Namespace> make_namespace();
  std::tm now() const;
  // Calls a macro, or the body of a call block, that was defined in the scope `outer`. Returns its
  // text.
  Value invoke(const Statement& macro, const ScopePointer& outer, Arguments&& arguments);

 private:
  void check_depth() const {
    if (depth_ > kEvaluationDepth) {
      fail("the template recurses too deeply; expected at most {} levels", kEvaluationDepth);
    }
  }

  // Statements: execute.cc.
  Flow execute(const Body& body);
  Flow execute(const Statement& node);
  Flow choose(const Statement& node);
  Flow loop(const Statement& node);
  Flow block(const Statement& node);
  void call_block(const Statement& node);
  void generation(const Statement& node);
  Flow in_new_scope(const Body& body);
  bool meets_condition(const Statement& loop, const ScopePointer& outer, const Value& item);
  void bind(const Function& function, std::string_view macro, Arguments& arguments);
  void assign(const Expression& target, const Value& value);
  Value make_macro(const Statement& node);
  void write(const Value& value);
  void write(std::string_view text);

  // Expressions: evaluate.cc.
  Value evaluate(const Expression& node);
  Value evaluate_here(const Expression& node);
  Value evaluate_name(const std::string& name);
  Value evaluate_logical(const Expression& node);
  Value evaluate_slice(const Expression& node);
  Value evaluate_dict(const Expression& node);
  Value evaluate_call(const Expression& node);
  Value evaluate_filter(const Expression& node);
  Value evaluate_binary(const Expression& node);
  Values evaluate_all(const std::vector<ExpressionPointer>& nodes);
  Arguments evaluate_arguments(const Expression& node);

  const ChatTemplate::Program& program_;
  const Dict& variables_;
  const std::function<std::tm()>& now_;
  ScopePointer scope_ = std::make_shared<Scope>();
  // Objects that can be part of a cycle of references; the destructor empties them.
  std::vector<ScopePointer> captured_;
  std::vector<std::shared_ptr<Namespace>> namespaces_;
  ChatTemplate::Result result_;
  std::string* out_ = &result_.text;
  const Value* block_text_ = nullptr;  // the text to which the filter of a block is applied
  size_t calls_ = 0;
  int depth_ = 0;
};

// Returns range, namespace, raise_exception or another global function; missing if there is none of
// that name (functions.cc).
Value find_global(std::string_view name);

// Returns the method of a string, a list or a dict; missing if there is none (methods.cc).
Value find_method(const Value& self, std::string_view name);

// ---- Operators: arithmetic.cc.

// Applies Python's operators + - * / // % to numbers, strings, lists and tuples. Throws Unsupported
// if an integer result has more than 64 bits.
Value apply(Runtime& runtime, ExpressionKind operation, const Value& a, const Value& b);
Value negate(Runtime& runtime, const Value& value, bool minus);
// Returns value[start:stop:step]; omitted parts are `none`.
Value sliced(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
             const Value& step);
Value element(Runtime& runtime, const Value& value, int64_t index);  // missing beyond the ends

// Returns `form % values`; only %s, %d and %% are supported.
Value formatted(Runtime& runtime, const Value& form, const Values& values);

// Returns the integer in a value; fails, naming `what`, if the value is not an integer.
int64_t integer_of(Runtime& runtime, const Value& value, std::string_view what);

// Returns text.replace(from, to, limit); replaces all occurrences if `limit` is negative.
std::string replaced(Runtime& runtime, std::string_view text, std::string_view from,
                     std::string_view to, int64_t limit);

}  // namespace fovea::text::jinja
