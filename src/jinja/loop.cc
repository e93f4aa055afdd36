#include "jinja/loop.h"

#include "jinja/function.h"

namespace fovea::jinja {

bool Loop::peek(Interpreter& interpreter) {
  if (has_after_) return true;
  if (counted_rest_) {
    if (rest_at_ == rest_.size()) return false;
    after_ = rest_[rest_at_++];
    return has_after_ = true;
  }
  return has_after_ = cursor_->next(interpreter, after_);
}

bool Loop::advance(Interpreter& interpreter, Value& item) {
  if (!peek(interpreter)) return false;
  has_after_ = false;
  ++index_;
  before_ = std::move(current_);
  current_ = std::move(after_);
  item = current_;
  return true;
}

size_t Loop::count(Interpreter& interpreter) const {
  if (count_) return *count_;
  count_ = fovea::jinja::length(interpreter, over_);
  if (count_) return *count_;
  for (Value item; cursor_->next(interpreter, item);) {
    interpreter.step();
    rest_.push_back(item);
  }
  counted_rest_ = true;
  count_ = rest_.size() + static_cast<size_t>(index_ + 1) + (has_after_ ? 1 : 0);
  return *count_;
}

std::string Loop::repr(Runtime&) const {
  return fmt::format("<LoopContext {}/{}>", index_ + 1, count(interpreter_));
}

Value Loop::call(Interpreter& interpreter, Arguments&&) {
  interpreter.fail("The loop must have the 'recursive' marker to be called recursively.");
}

Value Loop::cycle(Interpreter& interpreter, const Arguments& arguments) const {
  const Values& items = arguments.positional;
  if (items.empty()) interpreter.fail("no items for cycling given");
  return items[static_cast<size_t>(index_) % items.size()];
}

namespace {

// An object could hold this loop in turn, so that the two would never be freed.
void refuse_objects(Interpreter& interpreter, const Value& value) {
  interpreter.step();
  if (value.is(Kind::object)) interpreter.unsupported("loop.changed of a {}", type_name(value));
  if (value.is(Kind::sequence)) {
    for (const Value& item : value.items()) refuse_objects(interpreter, item);
  } else if (value.is(Kind::dict)) {
    for (const auto& [key, item] : value.dict()->entries()) refuse_objects(interpreter, item);
  }
}

}  // namespace

Value Loop::changed(Interpreter& interpreter, Arguments&& arguments) {
  Values& now = arguments.positional;
  bool differs = !has_changed_ || now.size() != last_changed_.size();
  for (size_t i = 0; i < now.size() && !differs; ++i) {
    differs = !equal(interpreter, now[i], last_changed_[i]);
  }
  if (differs) {
    for (const Value& value : now) refuse_objects(interpreter, value);
    last_changed_ = std::move(now);
    has_changed_ = true;
  }
  return Value(differs);
}

Value Loop::attribute(Interpreter& interpreter, std::string_view name) {
  const auto length = [&] { return static_cast<int64_t>(count(interpreter)); };
  if (name == "index") return Value(index_ + 1);
  if (name == "index0") return Value(index_);
  if (name == "first") return Value(index_ == 0);
  if (name == "last") return Value(!peek(interpreter));
  if (name == "length") return Value(length());
  if (name == "revindex") return Value(length() - index_);
  if (name == "revindex0") return Value(length() - index_ - 1);
  if (name == "depth") return Value(1);
  if (name == "depth0") return Value(0);
  if (name == "previtem") {
    return index_ == 0 ? Value::undefined("there is no previous item") : before_;
  }
  if (name == "nextitem") {
    return peek(interpreter) ? after_ : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") {
    return make_method(shared_from_this(), name);
  }
  return Value();
}

namespace {

class Selected : public Cursor {
 public:
  Selected(Interpreter& interpreter, const Condition& condition, Activation* outer,
           const Value& over)
      : condition_(condition),
        cursor_(cursor_over(interpreter, over)),
        own_(interpreter.activate(condition.function, outer)) {}

  bool next(Interpreter& interpreter, Value& item) override {
    if (!entered_) interpreter.enter_in(*own_, condition_.function.scope);
    entered_ = true;
    const Position from = interpreter.place;
    while (cursor_->next(interpreter, item)) {
      interpreter.step();
      interpreter.assign_in(*own_, *condition_.target, item);
      const bool holds = truth(interpreter, interpreter.evaluate_in(*own_, *condition_.test));
      interpreter.place = from;
      if (holds) return true;
    }
    return false;
  }

 private:
  const Condition& condition_;
  std::unique_ptr<Cursor> cursor_;
  Activation* own_;
  bool entered_ = false;
};

}  // namespace

Value condition_iterator(Interpreter& interpreter, const Condition& condition, Activation* outer,
                         const Value& over) {
  return make_generator(
      interpreter, std::make_unique<Selected>(interpreter, condition, outer, over), over.depth());
}

}  // namespace fovea::jinja
