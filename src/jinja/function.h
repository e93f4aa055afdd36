#pragma once

#include "jinja/interpreter.h"

namespace fovea::jinja {

class Loop;

// An iterator that can be used up once, as Python's generators.
Value make_generator(Runtime& runtime, std::unique_ptr<Cursor> cursor, int depth);

// A built-in function. `held` is the depth of the values that it refers to.
using Builtin = std::function<Value(Interpreter&, Arguments&)>;
Value make_function(std::string name, Builtin call, int held = 0);
Value make_method(std::shared_ptr<Loop> loop, std::string_view name);

Value make_range(int64_t start, int64_t stop, int64_t step);
std::shared_ptr<Object> make_view(std::shared_ptr<const Dict> dict, std::string_view kind);

// Arguments by the names of a function's parameters. What is not given is missing.
class Bound {
 public:
  Bound(Interpreter& interpreter, std::string_view function, Arguments& arguments,
        std::initializer_list<std::string_view> names, size_t required = 0);

  const Value& operator[](size_t i) const { return values_[i]; }
  Value& operator[](size_t i) { return values_[i]; }
  bool given(size_t i) const { return !values_[i].is(Kind::missing); }
  bool is_none(size_t i) const { return !given(i) || values_[i].is(Kind::none); }
  // Converted, or the default; fails for another type.
  int64_t integer(size_t i, int64_t otherwise = 0) const;
  const std::string& text(size_t i) const;  // only where given
  bool truth(size_t i, bool otherwise) const;

 private:
  Interpreter& interpreter_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  Values values_;
};

// A range of integers: what range() makes.
class Range : public Object {
 public:
  Range(int64_t first, int64_t end, int64_t stride);
  std::string type() const override { return "range"; }
  Value attribute(Interpreter& interpreter, std::string_view name) override;
  std::string repr(Runtime&) const override;
  bool iterable() const override { return true; }
  std::unique_ptr<Cursor> iterate() override;
  std::unique_ptr<Cursor> iterate_reversed() override;
  std::optional<size_t> length(Interpreter&) override { return count; }
  int64_t at(size_t i) const { return start + static_cast<int64_t>(i) * step; }

  int64_t start, stop, step;
  size_t count;
};

// dict.keys(), .values() and .items().
class View : public Object {
 public:
  View(std::shared_ptr<const Dict> from, std::string_view which)
      : dict(std::move(from)), kind(which) {}
  std::string type() const override { return "dict_" + std::string(kind); }
  std::string repr(Runtime& runtime) const override;
  bool iterable() const override { return true; }
  std::unique_ptr<Cursor> iterate() override;
  std::unique_ptr<Cursor> iterate_reversed() override;
  std::optional<size_t> length(Interpreter&) override { return dict->size(); }
  int depth() const override { return 1 + dict->depth(); }

  std::shared_ptr<const Dict> dict;
  std::string_view kind;  // keys, values, items
};

class Generator : public Object {
 public:
  Generator(std::unique_ptr<Cursor> cursor, int depth)
      : cursor_(std::move(cursor)), depth_(depth) {}
  std::string type() const override { return "generator"; }
  bool iterable() const override { return true; }
  std::unique_ptr<Cursor> iterate() override;  // each continues where the last one stopped
  bool next(Interpreter& interpreter, Value& item) { return cursor_->next(interpreter, item); }
  int depth() const override { return depth_; }

 private:
  std::unique_ptr<Cursor> cursor_;
  int depth_;
};

}  // namespace fovea::jinja
