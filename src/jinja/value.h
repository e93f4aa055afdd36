#pragma once

// The values of a template: Python's, as far as templates can make them. Strings are UTF-8,
// integers have 64 bits, whatever can be shared is immutable.

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "jinja/runtime.h"

namespace fovea::jinja {

class Interpreter;
class Object;
struct Sequence;
class Dict;

struct Text {
  std::string bytes;
  size_t length;  // in characters
  bool escaped;   // what |escape and |safe make: Jinja would escape whatever is added to it
};

// `missing` is a variable that was never set or an argument not given; reading it gives undefined.
enum class Kind {
  missing,
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  sequence,
  dict,
  object
};

class Value {
 public:
  Value() = default;  // missing
  explicit Value(bool value) : data_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) explicit Value(T value) : data_(static_cast<int64_t>(value)) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string text, bool escaped = false);
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::shared_ptr<const Sequence> items) : data_(std::move(items)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  static Value none();
  static Value undefined(std::string message);  // what using it will say

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::undefined) || is(Kind::missing); }
  bool is_integral() const { return is(Kind::integer) || is(Kind::boolean); }  // Python's int
  bool is_number() const { return is_integral() || is(Kind::real); }

  // Only for values of that kind.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const {
    return is(Kind::boolean) ? int64_t{boolean()} : std::get<int64_t>(data_);
  }
  double real() const {
    return is(Kind::real) ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const std::string& message() const { return *std::get<UndefinedPointer>(data_); }
  const std::string& bytes() const { return text().bytes; }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::vector<Value>& items() const;
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const std::shared_ptr<const Dict>& dict() const {
    return std::get<std::shared_ptr<const Dict>>(data_);
  }
  const std::shared_ptr<Object>& object() const { return std::get<std::shared_ptr<Object>>(data_); }
  // The object, if it is one of that class.
  template <class T>
  std::shared_ptr<T> as() const {
    return is(Kind::object) ? std::dynamic_pointer_cast<T>(object()) : nullptr;
  }

  int depth() const;  // containers within containers
  const void* identity() const;

 private:
  struct None {};
  using UndefinedPointer = std::shared_ptr<const std::string>;
  std::variant<std::monostate, UndefinedPointer, None, bool, int64_t, double,
               std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      data_;
};

using Values = std::vector<Value>;
enum class SequenceKind { list, tuple };

struct Sequence {
  Values items;
  SequenceKind kind;
  int depth;
};
// Also counts the work, and refuses nesting that would exhaust the stack.
Value new_sequence(Runtime& runtime, Values items, SequenceKind kind = SequenceKind::list);
inline Value new_tuple(Runtime& runtime, Values items) {
  return new_sequence(runtime, std::move(items), SequenceKind::tuple);
}
bool is_list(const Value& value);
bool is_tuple(const Value& value);

// In the order of insertion. Keys are strings, numbers, booleans and none.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(std::string_view key) const;
  const Value* find(Runtime& runtime, const Value& key) const;  // nullptr for keys that cannot be
  void set(Runtime& runtime, const Value& key, Value value);
  int depth() const { return depth_; }

 private:
  size_t place_of(Runtime& runtime, const Value& key) const;  // size() where absent

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, size_t> strings_;  // into entries_
  std::unordered_multimap<uint64_t, size_t> others_;      // the same for other keys, by their hash
  int depth_ = 1;
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// One pass over the items of a value.
class Cursor {
 public:
  virtual ~Cursor() = default;
  virtual bool next(Interpreter& interpreter, Value& item) = 0;
};

// What is not plain data: functions, namespaces, generators, the loop.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type() const = 0;              // Python's name of its type
  virtual std::string repr(Runtime& runtime) const;  // refused unless it has one
  virtual Value attribute(Interpreter&, std::string_view) { return Value(); }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter& interpreter, Arguments&& arguments);
  virtual bool iterable() const { return false; }
  virtual std::unique_ptr<Cursor> iterate() { return nullptr; }
  virtual std::unique_ptr<Cursor> iterate_reversed() { return nullptr; }  // if it can
  virtual std::optional<size_t> length(Interpreter&) { return std::nullopt; }
  virtual int depth() const { return 1; }
};

constexpr int kValueDepth =
    128;  // JSON has at most 64 levels; what recurses into values is bounded by this
int checked_depth(Runtime& runtime, int inner);  // 1 + inner, refused beyond kValueDepth

// ---- What Python's operators and built-ins do with values. Failures name Python's types.

std::string type_name(const Value& value);    // int, str, dict
std::string object_type(const Value& value);  // "dict object", as Jinja's messages have it
std::string to_text(Runtime& runtime, const Value& value);  // str(value)
std::string repr(Runtime& runtime, const Value& value);
void append_text(Runtime& runtime, std::string& out, const Value& value);
void append_repr(Runtime& runtime, std::string& out, const Value& value);
bool truth(Interpreter& interpreter, const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
// a < b for numbers, strings and sequences; fails for others.
bool less(Runtime& runtime, const Value& a, const Value& b, std::string_view op = "<");
bool less_equal(Runtime& runtime, const Value& a, const Value& b, std::string_view op = "<=");
bool same(const Value& a, const Value& b);  // Python's `is`
std::optional<size_t> length(Interpreter& interpreter, const Value& value);
bool contains(Interpreter& interpreter, const Value& container, const Value& item);
bool is_iterable(const Value& value);
std::unique_ptr<Cursor> cursor_over(Runtime& runtime, const Value& value);  // fails if it cannot
Values to_list(Interpreter& interpreter, const Value& value);
bool is_hashable(const Value& value);

// Strings with their size checked.
std::string replaced(Runtime& runtime, std::string_view text, std::string_view from,
                     std::string_view to, int64_t limit);

}  // namespace fovea::jinja
