#pragma once

// A parsed template. Names are resolved to slots before it runs, by Jinja's rules of scope.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace fovea::jinja {

// A variable: an index into the slots of a function's call, so many functions further out.
struct Slot {
  int up = 0;
  int index = -1;
};

enum class ExpressionKind {
  constant,   // value
  name,       // slot
  reference,  // an assigned attribute of a namespace: child 0 is its name, `name` the attribute
  attribute,  // child 0 . name
  item,       // child 0 [ child 1 ]
  slice,      // child 0 [ child 1 : child 2 : child 3 ], each may be absent
  call,       // child 0 ( rest )
  filter,     // child 0 | name ( rest ); child 0 is absent in filter blocks
  test,       // child 0 is name ( rest )
  list,
  tuple,
  dict,         // key, value, key, value
  conditional,  // child 1 if child 0 else child 2, which may be absent
  compare,      // child 0 operators[0] child 1 operators[1] ...
  concat,
  negative,
  positive,
  logical_not,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
};

enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind;
  Position place;
  std::string name;
  Value value;
  std::vector<ExpressionPointer> children;
  std::vector<std::pair<std::string, ExpressionPointer>> keywords;  // of calls
  ExpressionPointer star, double_star;                              // of calls
  std::vector<Comparison> operators;
  Slot slot;
  int depth = 1;
};

// What a scope does with its variables when it is entered; loop targets and parameters are set by
// the statement.
struct Load {
  enum class Kind { resolve, alias, undefined };
  int target = -1;  // slot of the current function
  Kind kind = Kind::undefined;
  Slot source = {};       // of an alias
  std::string name = {};  // to look up among the template's variables
};

struct Scope {
  std::vector<Load> loads;
};

// What has slots of its own: the template, a macro, the body of a call, a loop's condition.
struct Function {
  int slots = 0;
  bool captured = false;  // functions inside it may outlive a call
  Scope scope;
  std::vector<std::string> parameters;
  std::vector<int> parameter_slots;
  std::vector<ExpressionPointer> defaults;     // of the last parameters
  int caller = -1, kwargs = -1, varargs = -1;  // slots, where the body uses them
};

enum class StatementKind {
  text,        // name
  output,      // value
  choice,      // branches; the last test may be absent
  loop,        // target, value, body, otherwise; condition
  set,         // target, value
  set_block,   // target, body; value is a filter or absent
  macro,       // target, function, body
  call,        // value is the call; function, body
  filter,      // value is the filter; body
  with,        // targets, values, body
  generation,  // function, body
  leave,       // break
  next,        // continue
};

struct Statement;
using Body = std::vector<Statement>;

struct Branch {
  ExpressionPointer test;
  Body body;
};

// A loop's condition runs as a function of its own, which sees the outer variables as they are when
// it is asked.
struct Condition {
  ExpressionPointer target, test;
  Function function;
};

struct Statement {
  Statement(StatementKind which, Position where) : kind(which), place(where) {}

  StatementKind kind;
  Position place;
  std::string name;
  ExpressionPointer target, value;
  std::vector<ExpressionPointer> targets, values;
  std::vector<Branch> branches;
  Body body, otherwise;
  Scope scope, otherwise_scope;
  std::unique_ptr<Condition> condition;
  std::unique_ptr<Function> function;
  int loop_slot = -1;        // where the body uses `loop`
  bool known_place = false;  // of a generation block: what it renders goes straight to the text
};

}  // namespace fovea::jinja

namespace fovea {

struct ChatTemplate::Program {
  std::string name, source;
  jinja::Function root;
  jinja::Body body;
  bool untraceable = false;  // some generation block has no known place
};

}  // namespace fovea
