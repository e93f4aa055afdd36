#include <algorithm>

#include "jinja/characters.h"
#include "jinja/function.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

class Nothing : public Cursor {
 public:
  bool next(Interpreter&, Value&) override { return false; }
};

class Items : public Cursor {
 public:
  explicit Items(const Value& sequence) : sequence_(sequence) {}
  bool next(Interpreter& interpreter, Value& item) override {
    if (at_ == sequence_.items().size()) return false;
    interpreter.step();
    item = sequence_.items()[at_++];
    return true;
  }

 private:
  Value sequence_;
  size_t at_ = 0;
};

class Characters : public Cursor {
 public:
  explicit Characters(const Value& text) : text_(text) {}
  bool next(Interpreter& interpreter, Value& item) override {
    const std::string_view rest = std::string_view(text_.bytes()).substr(at_);
    if (rest.empty()) return false;
    interpreter.step();
    const std::string_view character = rest.substr(0, utf8::first(rest).bytes);
    at_ += character.size();
    item = Value(character);
    return true;
  }

 private:
  Value text_;
  size_t at_ = 0;
};

class Entries : public Cursor {
 public:
  Entries(std::shared_ptr<const Dict> dict, std::string_view kind, bool reversed)
      : dict_(std::move(dict)), kind_(kind), reversed_(reversed) {}

  bool next(Interpreter& interpreter, Value& item) override {
    if (at_ == dict_->size()) return false;
    interpreter.step();
    const size_t place = reversed_ ? dict_->size() - 1 - at_ : at_;
    const auto& [key, value] = dict_->entries()[place];
    ++at_;
    item = kind_ == "keys" ? key : kind_ == "values" ? value : new_tuple(interpreter, {key, value});
    return true;
  }

 private:
  std::shared_ptr<const Dict> dict_;
  std::string_view kind_;
  bool reversed_;
  size_t at_ = 0;
};

class Integers : public Cursor {
 public:
  Integers(int64_t first, int64_t step, size_t count) : next_(first), step_(step), left_(count) {}
  bool next(Interpreter& interpreter, Value& item) override {
    if (left_ == 0) return false;
    interpreter.step();
    item = Value(next_);
    if (--left_ > 0) next_ += step_;
    return true;
  }

 private:
  int64_t next_, step_;
  size_t left_;
};

class Continued : public Cursor {
 public:
  explicit Continued(Generator& generator) : generator_(generator) {}
  bool next(Interpreter& interpreter, Value& item) override {
    const Interpreter::Deeper deeper(interpreter);
    return generator_.next(interpreter, item);
  }

 private:
  Generator& generator_;
};

// Keeps what a cursor refers to.
class Held : public Cursor {
 public:
  Held(Value value, std::unique_ptr<Cursor> cursor)
      : value_(std::move(value)), cursor_(std::move(cursor)) {}
  bool next(Interpreter& interpreter, Value& item) override {
    return cursor_->next(interpreter, item);
  }

 private:
  Value value_;
  std::unique_ptr<Cursor> cursor_;
};

}  // namespace

std::unique_ptr<Cursor> Generator::iterate() { return std::make_unique<Continued>(*this); }

Value make_generator(Runtime& runtime, std::unique_ptr<Cursor> cursor, int depth) {
  return Value(std::shared_ptr<Object>(
      std::make_shared<Generator>(std::move(cursor), checked_depth(runtime, depth))));
}

Range::Range(int64_t first, int64_t end, int64_t stride)
    : start(first), stop(end), step(stride), count(0) {
  if (step > 0 ? start >= stop : start <= stop) return;
  // Unsigned: the distance may take 64 bits.
  const auto from = static_cast<uint64_t>(step > 0 ? start : stop);
  const auto to = static_cast<uint64_t>(step > 0 ? stop : start);
  const auto by = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  count = (to - from - 1) / by + 1;
}

Value Range::attribute(Interpreter& interpreter, std::string_view name) {
  if (name == "start") return Value(start);
  if (name == "stop") return Value(stop);
  if (name == "step") return Value(step);
  if (name == "count" || name == "index")
    interpreter.unsupported("range.{} is not supported", name);
  return Value();
}

std::string Range::repr(Runtime&) const {
  return step == 1 ? fmt::format("range({}, {})", start, stop)
                   : fmt::format("range({}, {}, {})", start, stop, step);
}

std::unique_ptr<Cursor> Range::iterate() { return std::make_unique<Integers>(start, step, count); }

std::unique_ptr<Cursor> Range::iterate_reversed() {
  return std::make_unique<Integers>(count > 0 ? at(count - 1) : start, -step, count);
}

Value make_range(int64_t start, int64_t stop, int64_t step) {
  return Value(std::shared_ptr<Object>(std::make_shared<Range>(start, stop, step)));
}

std::string View::repr(Runtime& runtime) const {
  Values items;
  for (const auto& [key, value] : dict->entries()) {
    items.push_back(kind == "keys"     ? key
                    : kind == "values" ? value
                                       : new_tuple(runtime, {key, value}));
  }
  return fmt::format("{}({})", type(), jinja::repr(runtime, new_sequence(runtime, items)));
}

std::unique_ptr<Cursor> View::iterate() { return std::make_unique<Entries>(dict, kind, false); }
std::unique_ptr<Cursor> View::iterate_reversed() {
  return std::make_unique<Entries>(dict, kind, true);
}

std::shared_ptr<Object> make_view(std::shared_ptr<const Dict> dict, std::string_view kind) {
  return std::make_shared<View>(std::move(dict), kind);
}

bool is_iterable(const Value& value) {
  switch (value.kind()) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::string:
    case Kind::sequence:
    case Kind::dict: return true;
    case Kind::object: return value.object()->iterable();
    default: return false;
  }
}

std::unique_ptr<Cursor> cursor_over(Runtime& runtime, const Value& value) {
  if (!is_iterable(value)) runtime.fail("'{}' object is not iterable", type_name(value));
  switch (value.kind()) {
    case Kind::string: return std::make_unique<Characters>(value);
    case Kind::sequence: return std::make_unique<Items>(value);
    case Kind::dict: return std::make_unique<Entries>(value.dict(), "keys", false);
    case Kind::object: return std::make_unique<Held>(value, value.object()->iterate());
    default: return std::make_unique<Nothing>();
  }
}

Values to_list(Interpreter& interpreter, const Value& value) {
  if (value.is(Kind::sequence)) {
    interpreter.step(1 + value.items().size() / 4);
    return value.items();
  }
  Values items;
  const auto cursor = cursor_over(interpreter, value);
  for (Value item; cursor->next(interpreter, item);) items.push_back(std::move(item));
  return items;
}

}  // namespace fovea::jinja
