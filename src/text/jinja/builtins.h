#pragma once

#include <array>

#include "jinja/interpreter.h"

namespace fovea::text::jinja {

struct Builtin;

// The arguments of a call of a built-in function, in the order of its parameters; omitted arguments
// are `missing`. The constructor fails if the arguments do not match the parameters.
class Bound {
 public:
  Bound(Interpreter& interpreter, const Builtin& builtin, Arguments&& given);

  const Value& operator[](size_t i) const { return values_[i]; }
  bool given(size_t i) const { return !values_[i].is(Kind::missing); }
  bool is_none(size_t i) const { return !given(i) || values_[i].is(Kind::none); }
  // These functions return argument `i` as an integer, a string or a truth value. integer() and
  // truth() return `otherwise` if the argument is omitted; integer() and text() fail if it has
  // another type.
  int64_t integer(size_t i, int64_t otherwise = 0) const;
  const std::string& text(size_t i) const;  // the argument must be given
  bool truth(size_t i, bool otherwise = false) const;

  Arguments all;  // the arguments of a function without named parameters

 private:
  Interpreter& interpreter_;
  const Builtin& builtin_;
  std::array<Value, 5> values_;
};

// A filter, a test or a method, whose first argument is the value to which it is applied, or a
// global function.
struct Builtin {
  std::string_view name;
  std::array<std::string_view, 5> parameters;  // empty: any arguments, in Bound::all
  size_t required;
  Value (*call)(Interpreter& interpreter, Bound& bound);
};

const Builtin* find_builtin(const auto& table, std::string_view name) {
  for (const Builtin& each : table) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

// These functions return null if there is no filter or test of that name.
const Builtin* find_filter(std::string_view name);
const Builtin* find_text_filter(std::string_view name);  // filters_text.cc
const Builtin* find_item_filter(std::string_view name);  // filters_items.cc
const Builtin* find_test(std::string_view name);

}  // namespace fovea::text::jinja
