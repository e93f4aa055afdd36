#pragma once

// The values of a template: those of Python that templates can create. Strings are UTF-8, integers
// have 64 bits. All values are immutable except namespaces, loops and generators.

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

#include "jinja/held.h"
#include "jinja/runtime.h"

namespace fovea::text::jinja {

class Interpreter;
class Object;
class Dict;
struct Sequence;

struct Text {
  std::string bytes;
  size_t length;  // in characters
  bool escaped;   // the result of |safe or |escape: a text that is added to it is escaped
  Held held{kTextBytes + bytes.capacity()};

  static constexpr size_t kTextBytes = 96;  // of an empty text, with its place on the heap
};

// `missing` is an argument that was not given or a name that was not found.
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
    requires(!std::same_as<T, bool>)
  explicit Value(T value) : data_(static_cast<int64_t>(value)) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::string text, bool escaped = false);
  explicit Value(std::string_view text) : Value(std::string(text)) {}
  explicit Value(const char* text) : Value(std::string(text)) {}
  explicit Value(std::shared_ptr<const Sequence> items) : data_(std::move(items)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  static Value none();
  static Value undefined(std::string message);  // the error of operations that need a value

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::undefined) || is(Kind::missing); }
  bool is_integral() const { return is(Kind::integer) || is(Kind::boolean); }  // Python's int
  bool is_number() const { return is_integral() || is(Kind::real); }

  // Call each only for a value of its kind; integer() also for booleans, real() for all numbers.
  bool boolean() const { return std::get<bool>(data_); }
  int64_t integer() const {
    return is(Kind::boolean) ? int64_t{boolean()} : std::get<int64_t>(data_);
  }
  double real() const {
    return is(Kind::real) ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const std::string& message() const;  // of undefined and missing
  const std::string& bytes() const { return text().bytes; }
  const Text& text() const { return *std::get<std::shared_ptr<const Text>>(data_); }
  const std::vector<Value>& items() const;
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  // Returns the object if it is of class T, otherwise null.
  template <class T>
  T* as() const {
    return is(Kind::object) ? dynamic_cast<T*>(&object()) : nullptr;
  }

  int depth() const;             // nesting of containers
  const void* identity() const;  // address of shared data, otherwise null

 private:
  struct None {};
  using UndefinedPointer = std::shared_ptr<const std::string>;
  std::variant<std::monostate, UndefinedPointer, None, bool, int64_t, double,
               std::shared_ptr<const Text>, std::shared_ptr<const Sequence>,
               std::shared_ptr<const Dict>, std::shared_ptr<Object>>
      data_;
};

using Values = std::vector<Value>;

// The views of a dict (keys, values, items) can be iterated but not indexed.
enum class SequenceKind { list, tuple, range, keys, values, items };

struct Sequence {
  Values items;
  SequenceKind kind;
  int depth;
  Held held{kSequenceBytes + items.capacity() * sizeof(Value)};

  static constexpr size_t kSequenceBytes = 80;  // of an empty sequence, with its place on the heap
};
// Creates a sequence. Counts the steps; fails if the nesting exceeds kValueDepth.
Value new_sequence(Runtime& runtime, Values items, SequenceKind kind = SequenceKind::list);
bool is_list(const Value& value);
bool is_tuple(const Value& value);
bool is_indexable(const Value& value);  // list, tuple or range

// A dict that keeps the order of insertion. Keys are strings, numbers, booleans and none.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const Value* find(std::string_view key) const;  // null if missing
  const Value* find(const Value& key) const;      // null also if it cannot be a key
  void set(Runtime& runtime, const Value& key, Value value);
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_of_;  // index in entries_, by key_text()
  int depth_ = 1;
  Held held_{kDictBytes};

  static constexpr size_t kDictBytes = 144;   // of an empty dict, with its place on the heap
  static constexpr size_t kEntryBytes = 160;  // of an entry and its place in the table
};

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A value that is not plain data: functions, methods, macros, namespaces, generators, loops.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type() const = 0;  // the name of its type in Python
  virtual Value attribute(Interpreter&, std::string_view) { return Value(); }
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter&, Arguments&&) { return Value(); }
  virtual int depth() const { return 1; }
};

// The result of map, select and similar filters: each item can be read once.
class Generator : public Object {
 public:
  explicit Generator(Value items) : items_(std::move(items)) {}
  std::string type() const override { return "generator"; }
  int depth() const override { return 1 + items_.depth(); }
  bool next(Value& item);

 private:
  Value items_;  // a sequence
  size_t at_ = 0;
};
Value new_generator(Runtime& runtime, Values items);

// The maximum nesting of values, which bounds recursion; JSON has at most 64 levels.
constexpr int kValueDepth = 128;
int checked_depth(Runtime& runtime, int inner);  // returns 1 + inner; fails beyond kValueDepth

// ---- Python's built-in operations: operations.cc. Errors name Python's types.

std::string type_name(const Value& value);                  // such as int, str or dict
std::string object_type(const Value& value);                // "dict object", as in Jinja's messages
std::string to_text(Runtime& runtime, const Value& value);  // str(value)
std::string repr(Runtime& runtime, const Value& value);
void append_text(Runtime& runtime, std::string& out, const Value& value);
std::string real_text(double value);  // repr of a float
bool truth(const Value& value);
bool equal(Runtime& runtime, const Value& a, const Value& b);
// a < b (or a <= b) for numbers, strings, lists and tuples; fails for other values, naming `op`.
bool less(Runtime& runtime, const Value& a, const Value& b, std::string_view op = "<");
bool less_equal(Runtime& runtime, const Value& a, const Value& b, std::string_view op = "<=");
std::optional<size_t> length(const Value& value);
bool contains(Runtime& runtime, const Value& container, const Value& item);
bool is_iterable(const Value& value);
Values to_list(Runtime& runtime, const Value& value);  // fails if it is not iterable

// ---- JSON: json.cc.

// The options of Python's json.dumps.
struct JsonStyle {
  bool ascii = false;                 // escape characters that are not ASCII
  bool sorted = false;                // sort entries by key
  std::optional<std::string> indent;  // per level; unset: all on one line
  std::string item_separator = ", ", key_separator = ": ";
};
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

// Returns the value of a JSON text; throws BadFile with `name` if the text is not valid.
Value from_json(Runtime& runtime, std::string_view text, const std::string& name);

}  // namespace fovea::text::jinja
