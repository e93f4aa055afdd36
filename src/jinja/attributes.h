#pragma once

#include "jinja/interpreter.h"

namespace fovea::jinja {

// The attribute="a.b.0" of filters: what it leads to from an item.
class Attribute {
 public:
  Attribute(Interpreter& interpreter, const Value& path);  // none or missing: the item itself
  // Where the path ends in nothing, `otherwise` if there is one.
  Value of(Interpreter& interpreter, const Value& item, const Value& otherwise = Value()) const;

 private:
  Values steps_;
};

// Items by which to sort or compare: strings in lower case unless case counts.
Value folded(Interpreter& interpreter, const Value& value, bool case_sensitive);

// Sorts items by keys, stably; in reverse equal ones keep their order too, as in Python.
void sort_by(Interpreter& interpreter, Values& items, const Values& keys, bool reverse);

}  // namespace fovea::jinja
