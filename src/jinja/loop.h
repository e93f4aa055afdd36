#pragma once

#include "jinja/interpreter.h"

namespace fovea::jinja {

// What a loop runs over, and its `loop` variable.
class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  Loop(Interpreter& interpreter, const Value& over)
      : interpreter_(interpreter), over_(over), cursor_(cursor_over(interpreter, over)) {}

  bool advance(Interpreter& interpreter, Value& item);

  std::string type() const override { return "LoopContext"; }
  std::string repr(Runtime&) const override;
  Value attribute(Interpreter& interpreter, std::string_view name) override;
  std::optional<size_t> length(Interpreter& interpreter) override { return count(interpreter); }
  bool callable() const override { return true; }
  Value call(Interpreter& interpreter, Arguments&& arguments) override;
  int depth() const override { return 1 + over_.depth(); }

  Value cycle(Interpreter& interpreter, const Arguments& arguments) const;
  Value changed(Interpreter& interpreter, Arguments&& arguments);

 private:
  bool peek(Interpreter& interpreter);
  size_t count(Interpreter& interpreter) const;

  Interpreter& interpreter_;
  Value over_;
  std::unique_ptr<Cursor> cursor_;
  int64_t index_ = -1;
  Value before_, current_, after_;
  bool has_after_ = false;
  // What a generator still had when its length was asked for.
  mutable std::optional<size_t> count_;
  mutable Values rest_;
  size_t rest_at_ = 0;
  mutable bool counted_rest_ = false;
  Values last_changed_;
  bool has_changed_ = false;
};

// The items of a loop that meet its condition.
Value condition_iterator(Interpreter& interpreter, const Condition& condition, Activation* outer,
                         const Value& over);

}  // namespace fovea::jinja
