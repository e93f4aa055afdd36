#pragma once

// A parsed template. The comment after each kind names the fields that it uses.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace fovea::text::jinja {

enum class ExpressionKind {
  constant,   // value
  name,       // name
  reference,  // an attribute of a namespace as a target: child 0 is the namespace
  attribute,  // child 0 . name
  item,       // child 0 [ child 1 ]
  slice,      // child 0 [ child 1 : child 2 : child 3 ]; children 1 to 3 may be null
  call,       // child 0 ( rest )
  filter,     // child 0 | name ( rest ); child 0 is null for the text of a block
  test,       // child 0 is name ( rest )
  list,
  tuple,
  dict,         // key, value, key, value
  conditional,  // child 1 if child 0 else child 2, which may be null
  negative,
  positive,
  logical_not,
  // child 0 operator child 1:
  logical_or,
  logical_and,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  concat,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
};

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Expression {
  ExpressionKind kind;
  Position position;
  std::string name;
  Value value;
  std::vector<ExpressionPointer> children;
  std::vector<std::pair<std::string, ExpressionPointer>> keywords;  // of calls
  ExpressionPointer star;                                           // the *arguments of a call
  int depth = 1;
};

// A macro, or the body of a call block.
struct Function {
  std::vector<std::string> parameters;
  std::vector<ExpressionPointer> defaults;  // defaults of the last parameters
  bool uses_caller = false;
};

enum class StatementKind {
  text,        // name
  output,      // value
  choice,      // branches; the last test may be null
  loop,        // target, value, body, otherwise; test may be null
  set,         // target, value
  set_block,   // target, body; value is a filter or null
  macro,       // name, function, body
  call,        // value is the call; function, body
  filter,      // value is the filter; body
  generation,  // body
  leave,       // break
  next,        // continue
};

struct Statement;
using Body = std::vector<Statement>;

struct Branch {
  ExpressionPointer test;
  Body body;
};

struct Statement {
  Statement(StatementKind which, Position where) : kind(which), position(where) {}

  StatementKind kind;
  Position position;
  std::string name;
  ExpressionPointer target, value, test;
  std::vector<Branch> branches;
  Body body, otherwise;
  Function function;
};

}  // namespace fovea::text::jinja

namespace fovea::text {

struct ChatTemplate::Program {
  std::string name, source;
  jinja::Body body;
};

}  // namespace fovea::text
