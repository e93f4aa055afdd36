#include <algorithm>
#include <unordered_set>

#include "jinja/builtins.h"
#include "jinja/parser.h"

namespace fovea::text::jinja {
namespace {

using E = ExpressionKind;

std::vector<ExpressionPointer> all(auto&&... nodes) {
  std::vector<ExpressionPointer> result;
  (result.push_back(std::move(nodes)), ...);
  return result;
}

// The levels of precedence; a higher level binds more tightly.
constexpr int kNot = 2, kComparison = 3, kUnary = 7;

struct Operator {
  std::string_view symbol;
  ExpressionKind kind;
  int level;
};
constexpr Operator kOperators[] = {
    {"or", E::logical_or, 0}, {"and", E::logical_and, 1},  {"==", E::equal, 3},
    {"!=", E::not_equal, 3},  {"<", E::less, 3},           {"<=", E::less_equal, 3},
    {">", E::greater, 3},     {">=", E::greater_equal, 3}, {"in", E::in, 3},
    {"+", E::add, 4},         {"-", E::subtract, 4},       {"~", E::concat, 5},
    {"*", E::multiply, 6},    {"/", E::divide, 6},         {"//", E::floor_divide, 6},
    {"%", E::modulo, 6}};

}  // namespace

void Parser::deepen(Expression& node, const Pointer& child) const {
  if (child) node.depth = std::max(node.depth, child->depth + 1);
  if (node.depth > kExpressionDepth) {
    refuse_at(node.position,
              fmt::format("an expression of more than {} levels; expected a shorter one",
                          kExpressionDepth));
  }
}

Parser::Pointer Parser::make(ExpressionKind kind, Position position,
                             std::vector<Pointer> children) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->position = position;
  node->children = std::move(children);
  for (const Pointer& child : node->children) deepen(*node, child);
  return node;
}

// Parses one item, or a tuple of items separated by commas.
Parser::Pointer Parser::tuple_of(Pointer (Parser::*item)(), std::string_view end) {
  const auto ended = [&] {
    const TokenType type = token().type;
    return type == TokenType::variable_end || type == TokenType::block_end || is_symbol(")") ||
           is_name(end);
  };
  const Position position = token().position;
  std::vector<Pointer> items;
  bool several = is_symbol(")");  // () is the empty tuple
  while (!ended()) {
    items.push_back((this->*item)());
    if (!skip_symbol(",")) break;
    several = true;
  }
  if (!several && items.empty()) refuse("expected an expression");
  return several ? make(E::tuple, position, std::move(items)) : std::move(items[0]);
}

Parser::Pointer Parser::expression() {
  const Level guard = nested();
  const size_t known = unknown_.size();
  Pointer node = binary(0);
  while (is_name("if")) {
    const Position position = take().position;
    Pointer condition = binary(0);
    Pointer otherwise = skip_name("else") ? expression() : nullptr;
    node = make(E::conditional, position, all(condition, node, otherwise));
    unknown_.resize(known);
  }
  return node;
}

// Parses an expression whose operators have this level or a higher one.
Parser::Pointer Parser::binary(int level) {
  if (level == kUnary) return unary();
  if (level == kNot && is_name("not")) {
    const Level guard = nested();
    const Position position = take().position;
    Pointer inner = binary(kNot);
    return make(E::logical_not, position, all(inner));
  }
  const auto next = [&]() -> const Operator* {
    const bool negated = is_name("not") && is(TokenType::name, "in", 1);
    if (token().type != TokenType::symbol && token().type != TokenType::name) return nullptr;
    const std::string_view text = negated ? "in" : std::string_view(token().text);
    for (const Operator& each : kOperators) {
      if (each.level == level && each.symbol == text) return &each;
    }
    return nullptr;
  };
  Pointer node = binary(level + 1);
  while (const Operator* found = next()) {
    const Position position = token().position;
    const bool negated = skip_name("not");
    take();
    Pointer right = binary(level + 1);
    node = make(negated ? E::not_in : found->kind, position, all(node, right));
    if (level == kComparison && next()) {
      refuse_at(token().position,
                "a chain of comparisons is not supported; expected `and` between them",
                ErrorKind::Unsupported);
    }
  }
  return node;
}

Parser::Pointer Parser::unary(bool filters) {
  Pointer node;
  if (is_symbol("-") || is_symbol("+")) {
    const Level guard = nested();
    const LexedToken sign = take();
    Pointer inner = unary(false);
    node = make(sign.text == "-" ? E::negative : E::positive, sign.position, all(inner));
  } else {
    node = primary();
  }
  node = postfix(std::move(node), filters);
  if (is_symbol("**")) {
    refuse_at(token().position, "the operator ** is not supported", ErrorKind::Unsupported);
  }
  return node;
}

Parser::Pointer Parser::named() {
  const LexedToken name = take();
  const std::string& text = name.text;
  Pointer node = make(E::constant, name.position);
  if (text == "true" || text == "True" || text == "false" || text == "False") {
    node->value = Value(text == "true" || text == "True");
  } else if (text == "none" || text == "None") {
    node->value = Value::none();
  } else {
    if (functions_ > 0 && (text == "varargs" || text == "kwargs")) {
      refuse_at(name.position, fmt::format("{} of a macro is not supported", text),
                ErrorKind::Unsupported);
    }
    uses_caller_ = uses_caller_ || text == "caller";
    node->kind = E::name;
    node->name = text;
  }
  return node;
}

Parser::Pointer Parser::primary() {
  const TokenType type = token().type;
  if (type == TokenType::name) return named();
  if (type == TokenType::number || type == TokenType::string) {
    Pointer node = make(E::constant, token().position);
    node->value = take().value;
    while (type == TokenType::string && token().type == TokenType::string) {
      node->value = Value(node->value.bytes() + take().value.bytes());
    }
    return node;
  }
  if (is_symbol("[") || is_symbol("{")) return list_or_dict();
  if (!is_symbol("(")) refuse("expected an expression");
  const Level guard = nested();
  take();
  Pointer node = tuple();
  expect_symbol(")");
  return node;
}

Parser::Pointer Parser::list_or_dict() {
  const Level guard = nested();
  const LexedToken open = take();
  const bool is_dict = open.text == "{";
  const std::string_view end = is_dict ? "}" : "]";
  std::vector<Pointer> items;
  while (!is_symbol(end)) {
    if (!items.empty()) expect_symbol(",");
    if (is_symbol(end)) break;
    items.push_back(expression());
    if (!is_dict) continue;
    expect_symbol(":");
    items.push_back(expression());
  }
  expect_symbol(end);
  return make(is_dict ? E::dict : E::list, open.position, std::move(items));
}

// Parses the target of an assignment: a name, or several in parentheses; target() also accepts
// ns.name.
Parser::Pointer Parser::loop_target() {
  const Position position = token().position;
  if (skip_symbol("(")) {
    Pointer node = tuple_of(&Parser::loop_target);
    expect_symbol(")");
    return node;
  }
  Pointer node = primary();
  if (node->kind != E::name) {
    refuse_at(position, "cannot be assigned to; expected the name of a variable");
  }
  if (node->name == "loop" && loops_ > 0) {
    refuse_at(position, "the variable loop cannot be assigned to in a loop; expected another name");
  }
  return node;
}

Parser::Pointer Parser::target() {
  const Position position = token().position;
  Pointer node = loop_target();
  if (node->kind == E::name && skip_symbol(".")) {
    node = make(E::reference, position, all(node));
    node->name = take_name("the name of an attribute");
  }
  return node;
}

// Parses the suffixes of an expression: .name, [index], (arguments), and, if `filters` is set,
// `| filter` and `is test`.
Parser::Pointer Parser::postfix(Pointer node, bool filters) {
  while (true) {
    if (is_symbol(".") || is_symbol("[")) {
      node = subscript(std::move(node));
    } else if (is_symbol("(")) {
      node = make(E::call, token().position, all(node));
      arguments(*node);
    } else {
      break;
    }
  }
  while (filters) {
    if (is_symbol("|")) {
      take();
      node = filter(std::move(node));
    } else if (is_name("is")) {
      node = test(std::move(node));
    } else if (is_symbol("(")) {
      node = make(E::call, token().position, all(node));
      arguments(*node);
    } else {
      break;
    }
  }
  return node;
}

Parser::Pointer Parser::subscript(Pointer node) {
  const LexedToken open = take();
  if (open.text == "[") return index_or_slice(std::move(node), open.position);
  if (token().type == TokenType::name) {
    node = make(E::attribute, open.position, all(node));
    node->name = take().text;
    return node;
  }
  if (token().type != TokenType::number || !token().value.is(Kind::integer)) {
    refuse("expected a name or an integer");
  }
  Pointer index = primary();
  return make(E::item, open.position, all(node, index));
}

Parser::Pointer Parser::index_or_slice(Pointer node, Position position) {
  const Level guard = nested();
  std::vector<Pointer> parts = all(node);
  const auto ends = [&] { return is_symbol(":") || is_symbol("]"); };
  if (is_symbol("]")) refuse("expected an index");
  parts.push_back(is_symbol(":") ? nullptr : expression());
  const bool sliced = skip_symbol(":");
  if (sliced) {
    parts.push_back(ends() ? nullptr : expression());
    parts.push_back(skip_symbol(":") && !ends() ? expression() : nullptr);
  }
  expect_symbol("]");
  return make(sliced ? E::slice : E::item, position, std::move(parts));
}

void Parser::note_unknown(const Expression& node) {
  const bool is_filter = node.kind == E::filter;
  if (is_filter ? find_filter(node.name) : find_test(node.name)) return;
  unknown_.push_back({node.position, fmt::format("{} '{}' is not supported",
                                                 is_filter ? "filter" : "test", node.name)});
}

// Parses a filter from its name on; the bar was already read.
Parser::Pointer Parser::filter(Pointer node) {
  node = make(E::filter, token().position, all(node));
  node->name = take_name("the name of a filter");
  note_unknown(*node);
  if (is_symbol("(")) arguments(*node);
  return node;
}

Parser::Pointer Parser::test(Pointer node) {
  const Position position = take().position;
  const bool negated = skip_name("not");
  node = make(E::test, position, all(node));
  node->name = take_name("the name of a test");
  note_unknown(*node);
  const TokenType type = token().type;
  const bool argument = type == TokenType::name || type == TokenType::string ||
                        type == TokenType::number || is_symbol("[") || is_symbol("{");
  if (is_symbol("(")) {
    arguments(*node);
  } else if (argument && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) refuse("tests with `is` cannot be chained");
    Pointer value = primary();
    node->children.push_back(postfix(std::move(value), false));
    deepen(*node, node->children.back());
  }
  return negated ? make(E::logical_not, position, all(node)) : std::move(node);
}

// Parses arguments such as (a, b, *c, key=d).
void Parser::arguments(Expression& call) {
  const Level guard = nested();
  expect_symbol("(");
  std::unordered_set<std::string> keywords;
  for (bool first = true; !is_symbol(")"); first = false) {
    if (!first) expect_symbol(",");
    if (is_symbol(")")) break;
    if (token().type == TokenType::name && is(TokenType::symbol, "=", 1)) {
      std::string key = take().text;
      take();
      if (!keywords.insert(key).second) refuse(fmt::format("the argument {} is repeated", key));
      call.keywords.emplace_back(std::move(key), expression());
      deepen(call, call.keywords.back().second);
    } else if (!call.keywords.empty() || call.star) {
      refuse("expected an argument with a name after one with a name or *");
    } else if (skip_symbol("*")) {
      deepen(call, call.star = expression());
    } else {
      call.children.push_back(expression());
      deepen(call, call.children.back());
    }
  }
  expect_symbol(")");
}

}  // namespace fovea::text::jinja
