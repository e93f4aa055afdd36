#include <algorithm>
#include <array>
#include <optional>

#include "jinja/parser.h"

namespace fovea::jinja {

using enum ExpressionKind;

void Parser::deepen(Expression& node, const Pointer& child) {
  if (child) node.depth = std::max(node.depth, child->depth + 1);
}

void Parser::finish(const Expression& node) const {
  if (node.depth > kExpressionDepth) {
    refuse_at(node.place,
              fmt::format("an expression of more than {} levels; expected a shorter one",
                          kExpressionDepth));
  }
}

Parser::Pointer Parser::make(ExpressionKind kind, Position place,
                             std::vector<Pointer> children) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->place = place;
  node->children = std::move(children);
  for (const Pointer& child : node->children) deepen(*node, child);
  finish(*node);
  return node;
}

namespace {

std::vector<ExpressionPointer> all(auto&&... nodes) {
  std::vector<ExpressionPointer> result;
  (result.push_back(std::move(nodes)), ...);
  return result;
}

}  // namespace

bool Parser::ends_tuple(std::initializer_list<std::string_view> ends) const {
  const TokenType type = token().type;
  if (type == TokenType::variable_end || type == TokenType::block_end || is_symbol(")"))
    return true;
  return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return is_name(end); });
}

// One expression, or several with commas between.
Parser::Pointer Parser::tuple(bool conditional, std::initializer_list<std::string_view> ends,
                              bool in_brackets) {
  const Position place = token().place;
  std::vector<Pointer> items;
  bool several = false;
  while (!ends_tuple(ends)) {
    items.push_back(conditional ? expression() : disjunction());
    if (!skip_symbol(",")) break;
    several = true;
  }
  if (!several && !items.empty()) return std::move(items[0]);
  if (!several && !in_brackets) refuse("expected an expression");
  return make(ExpressionKind::tuple, place, std::move(items));
}

Parser::Pointer Parser::targets(std::initializer_list<std::string_view> ends, bool references) {
  const Position place = token().place;
  std::vector<Pointer> items;
  bool several = false;
  while (!ends_tuple(ends)) {
    items.push_back(primary(references));
    if (!skip_symbol(",")) break;
    several = true;
  }
  if (!several && items.empty()) refuse("expected the name of a variable");
  return several ? make(ExpressionKind::tuple, place, std::move(items)) : std::move(items[0]);
}

Parser::Pointer Parser::expression() {
  const Nested nested(*this);
  Pointer node = disjunction();
  while (is_name("if")) {
    const Position place = take().place;
    Pointer condition = disjunction();
    Pointer otherwise = skip_name("else") ? expression() : nullptr;
    node = make(conditional, place, all(condition, node, otherwise));
  }
  return node;
}

Parser::Pointer Parser::disjunction() {
  Pointer node = conjunction();
  while (is_name("or")) {
    const Position place = take().place;
    Pointer right = conjunction();
    node = make(logical_or, place, all(node, right));
  }
  return node;
}

Parser::Pointer Parser::conjunction() {
  Pointer node = negation();
  while (is_name("and")) {
    const Position place = take().place;
    Pointer right = negation();
    node = make(logical_and, place, all(node, right));
  }
  return node;
}

Parser::Pointer Parser::negation() {
  if (!is_name("not")) return comparison();
  const Nested nested(*this);
  const Position place = take().place;
  Pointer inner = negation();
  return make(logical_not, place, all(inner));
}

Parser::Pointer Parser::comparison() {
  constexpr std::array<std::pair<std::string_view, Comparison>, 6> symbols = {{
      {"==", Comparison::equal},
      {"!=", Comparison::not_equal},
      {"<", Comparison::less},
      {"<=", Comparison::less_equal},
      {">", Comparison::greater},
      {">=", Comparison::greater_equal},
  }};
  const Position place = token().place;
  std::vector<Pointer> operands;
  operands.push_back(sum());
  std::vector<Comparison> operators;
  while (true) {
    const auto symbol = std::find_if(symbols.begin(), symbols.end(),
                                     [&](const auto& entry) { return is_symbol(entry.first); });
    if (symbol != symbols.end()) {
      operators.push_back(symbol->second);
    } else if (is_name("in")) {
      operators.push_back(Comparison::in);
    } else if (is_name("not") && is_name("in", 1)) {
      operators.push_back(Comparison::not_in);
      take();
    } else {
      break;
    }
    take();
    operands.push_back(sum());
  }
  if (operators.empty()) return std::move(operands[0]);
  Pointer node = make(compare, place, std::move(operands));
  node->operators = std::move(operators);
  return node;
}

Parser::Pointer Parser::sum() {
  Pointer node = concatenation();
  while (is_symbol("+") || is_symbol("-")) {
    const LexedToken sign = take();
    Pointer right = concatenation();
    node = make(sign.text == "+" ? add : subtract, sign.place, all(node, right));
  }
  return node;
}

Parser::Pointer Parser::concatenation() {
  const Position place = token().place;
  std::vector<Pointer> parts;
  do {
    parts.push_back(product());
  } while (skip_symbol("~"));
  return parts.size() == 1 ? std::move(parts[0]) : make(concat, place, std::move(parts));
}

Parser::Pointer Parser::product() {
  Pointer node = power();
  while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
    const LexedToken sign = take();
    Pointer right = power();
    const ExpressionKind kind = sign.text == "*"    ? multiply
                                : sign.text == "/"  ? divide
                                : sign.text == "//" ? floor_divide
                                                    : modulo;
    node = make(kind, sign.place, all(node, right));
  }
  return node;
}

Parser::Pointer Parser::power() {
  Pointer node = unary();
  while (is_symbol("**")) {
    const Position place = take().place;
    Pointer right = unary();
    node = make(ExpressionKind::power, place, all(node, right));
  }
  return node;
}

Parser::Pointer Parser::unary(bool filters) {
  Pointer node;
  if (is_symbol("-") || is_symbol("+")) {
    const Nested nested(*this);
    const LexedToken sign = take();
    Pointer inner = unary(false);
    node = make(sign.text == "-" ? negative : positive, sign.place, all(inner));
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return filters ? filtered(std::move(node)) : std::move(node);
}

Parser::Pointer Parser::named(const LexedToken& name, bool references) {
  const std::string& text = name.text;
  Pointer node = make(constant, name.place);
  if (text == "true" || text == "True" || text == "false" || text == "False") {
    node->value = Value(text == "true" || text == "True");
  } else if (text == "none" || text == "None") {
    node->value = Value::none();
  } else if (references && skip_symbol(".")) {
    node->kind = ExpressionKind::name;
    node->name = text;
    node = make(reference, name.place, all(node));
    node->name = take_name("the name of an attribute");
  } else {
    node->kind = ExpressionKind::name;
    node->name = text;
  }
  return node;
}

Parser::Pointer Parser::primary(bool references) {
  const LexedToken& next = token();
  const Position place = next.place;
  if (next.type == TokenType::name) return named(take(), references);
  if (next.type == TokenType::string) {
    std::string text;
    while (token().type == TokenType::string) text += take().value.bytes();
    Pointer node = make(constant, place);
    node->value = Value(std::move(text));
    return node;
  }
  if (next.type == TokenType::number) {
    Pointer node = make(constant, place);
    node->value = take().value;
    return node;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  if (!is_symbol("(")) refuse("expected an expression");
  const Nested nested(*this);
  take();
  Pointer node = tuple(true, {}, true);
  expect_symbol(")");
  return node;
}

Parser::Pointer Parser::list() {
  const Nested nested(*this);
  const Position place = take().place;
  std::vector<Pointer> items;
  while (!is_symbol("]")) {
    if (!items.empty()) expect_symbol(",");
    if (is_symbol("]")) break;
    items.push_back(expression());
  }
  expect_symbol("]");
  return make(ExpressionKind::list, place, std::move(items));
}

Parser::Pointer Parser::dict() {
  const Nested nested(*this);
  const Position place = take().place;
  std::vector<Pointer> items;
  while (!is_symbol("}")) {
    if (!items.empty()) expect_symbol(",");
    if (is_symbol("}")) break;
    items.push_back(expression());
    expect_symbol(":");
    items.push_back(expression());
  }
  expect_symbol("}");
  return make(ExpressionKind::dict, place, std::move(items));
}

Parser::Pointer Parser::postfix(Pointer node) {
  while (true) {
    if (is_symbol(".") || is_symbol("[")) {
      node = subscript(std::move(node));
    } else if (is_symbol("(")) {
      const Position place = token().place;
      node = make(call, place, all(node));
      arguments(*node);
    } else {
      return node;
    }
  }
}

Parser::Pointer Parser::filtered(Pointer node) {
  while (true) {
    if (is_symbol("|")) {
      node = filter(std::move(node), false);
    } else if (is_name("is")) {
      node = test(std::move(node));
    } else if (is_symbol("(")) {
      const Position place = token().place;
      node = make(call, place, all(node));
      arguments(*node);
    } else {
      return node;
    }
  }
}

Parser::Pointer Parser::subscript(Pointer node) {
  const LexedToken open = take();
  if (open.text == "[") return subscripted(std::move(node), open.place);
  if (token().type == TokenType::name) {
    node = make(attribute, open.place, all(node));
    node->name = take().text;
    return node;
  }
  if (token().type != TokenType::number || !token().value.is(Kind::integer)) {
    refuse("expected a name or an integer");
  }
  Pointer index = primary();
  return make(item, open.place, all(node, index));
}

Parser::Pointer Parser::subscripted(Pointer node, Position place) {
  const Nested nested(*this);
  std::vector<Pointer> parts;
  parts.push_back(std::move(node));
  const auto ends = [&] { return is_symbol(":") || is_symbol("]") || is_symbol(","); };
  if (is_symbol("]")) refuse("expected an index");
  Pointer first = is_symbol(":") ? nullptr : expression();
  if (first && is_symbol(",")) {  // x[1, 2] is x[(1, 2)]
    std::vector<Pointer> items = all(first);
    while (skip_symbol(",") && !is_symbol("]")) items.push_back(expression());
    first = make(ExpressionKind::tuple, place, std::move(items));
  }
  parts.push_back(std::move(first));
  const bool sliced = skip_symbol(":");
  if (sliced) {
    parts.push_back(ends() ? nullptr : expression());
    parts.push_back(skip_symbol(":") && !ends() ? expression() : nullptr);
  }
  expect_symbol("]");
  return make(sliced ? slice : item, place, std::move(parts));
}

std::string Parser::dotted_name(std::string_view what) {
  std::string name = take_name(what);
  while (skip_symbol(".")) name += "." + take_name(what);
  return name;
}

Parser::Pointer Parser::filter(Pointer node, bool start_inline) {
  while (start_inline || is_symbol("|")) {
    if (!start_inline) take();
    const Position place = token().place;
    node = make(ExpressionKind::filter, place, all(node));
    node->name = dotted_name("the name of a filter");
    if (is_symbol("(")) arguments(*node);
    start_inline = false;
  }
  return node;
}

Parser::Pointer Parser::test(Pointer node) {
  const Position place = take().place;
  const bool negated = skip_name("not");
  node = make(ExpressionKind::test, place, all(node));
  node->name = dotted_name("the name of a test");
  const TokenType type = token().type;
  const bool argument = type == TokenType::name || type == TokenType::string ||
                        type == TokenType::number || is_symbol("[") || is_symbol("{");
  if (is_symbol("(")) {
    arguments(*node);
  } else if (argument && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) refuse("tests with `is` cannot be chained");
    Pointer value = primary();
    node->children.push_back(postfix(std::move(value)));
    deepen(*node, node->children.back());
    finish(*node);
  }
  return negated ? make(logical_not, place, all(node)) : std::move(node);
}

// ( a, b, key=c, *d, **e )
void Parser::arguments(Expression& call) {
  const Nested nested(*this);
  expect_symbol("(");
  bool first = true;
  std::unordered_set<std::string> keywords;
  while (!is_symbol(")")) {
    if (!first) expect_symbol(",");
    if (is_symbol(")")) break;
    argument(call, keywords);
    first = false;
  }
  expect_symbol(")");
  finish(call);
}

void Parser::argument(Expression& call, std::unordered_set<std::string>& keywords) {
  const auto ensure = [&](bool holds) {
    if (!holds) refuse("an argument at a place where none may stand");
  };
  if (skip_symbol("*")) {
    ensure(!call.star && !call.double_star);
    deepen(call, call.star = expression());
  } else if (skip_symbol("**")) {
    ensure(!call.double_star);
    deepen(call, call.double_star = expression());
  } else if (token().type == TokenType::name && is_symbol("=", 1)) {
    ensure(!call.double_star);
    std::string key = take().text;
    take();
    ensure(keywords.insert(key).second);
    call.keywords.emplace_back(std::move(key), expression());
    deepen(call, call.keywords.back().second);
  } else {
    ensure(!call.star && !call.double_star && call.keywords.empty());
    call.children.push_back(expression());
    deepen(call, call.children.back());
  }
}

}  // namespace fovea::jinja
