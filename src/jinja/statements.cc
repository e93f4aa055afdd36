#include <algorithm>

#include "jinja/parser.h"
#include "unicode/utf8.h"

namespace fovea::jinja {

void Parser::refuse_at(Position place, const std::string& what, ErrorKind kind) const {
  refuse_source(kind, name_, place, what);
}

void Parser::refuse(const std::string& what) const {
  const LexedToken& next = token();
  std::string found;
  switch (next.type) {
    case TokenType::end: found = "the template ends here"; break;
    case TokenType::block_end:
    case TokenType::variable_end: found = "the tag ends here"; break;
    default:
      constexpr size_t kShown = 60;  // bytes: a string may be the rest of the template
      const std::string_view shown = std::string_view(next.text).substr(0, kShown);
      found = fmt::format("unexpected '{}{}'", shown.substr(0, utf8::valid_prefix(shown)),
                          next.text.size() > kShown ? "..." : "");
  }
  refuse_at(next.place, found + "; " + what);
}

const LexedToken& Parser::token(size_t ahead) const {
  return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
}

LexedToken Parser::take() {
  LexedToken& next = tokens_[at_];
  if (next.type == TokenType::end) return next;  // stays
  ++at_;
  return std::move(next);
}

bool Parser::is_symbol(std::string_view symbol, size_t ahead) const {
  return token(ahead).type == TokenType::symbol && token(ahead).text == symbol;
}

bool Parser::is_name(std::string_view name, size_t ahead) const {
  return token(ahead).type == TokenType::name && token(ahead).text == name;
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!is_symbol(symbol)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  take();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) refuse(fmt::format("expected '{}'", symbol));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) refuse(fmt::format("expected '{}'", name));
}

std::string Parser::take_name(std::string_view what) {
  if (token().type != TokenType::name) refuse(fmt::format("expected {}", what));
  return take().text;
}

void Parser::expect(TokenType type, std::string_view what) {
  if (token().type != type) refuse(fmt::format("expected {}", what));
  take();
}

Body Parser::run() { return statements({}); }

// Text and tags up to a tag of one of these names, which is left to the caller.
Body Parser::statements(std::initializer_list<std::string_view> ends) {
  Body body;
  while (token().type != TokenType::end) {
    const LexedToken next = take();
    if (next.type == TokenType::data) {
      body.emplace_back(StatementKind::text, next.place).name = next.text;
    } else if (next.type == TokenType::variable_begin) {
      body.emplace_back(StatementKind::output, next.place).value = tuple(true);
      expect(TokenType::variable_end, "'}}'");
    } else {
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return is_name(end); }))
        return body;
      if (is_name("print")) {
        print(body);
      } else {
        body.push_back(statement());
      }
      expect(TokenType::block_end, "'%}'");
    }
  }
  if (ends.size() > 0) {
    refuse(fmt::format("expected {{% {} %}}", fmt::join(ends, " %} or {% ")));
  }
  return body;
}

// The same from the end of the opening tag on; without the closing name if it is dropped.
Body Parser::body_until(std::initializer_list<std::string_view> ends, bool drop_end) {
  const Nested nested(*this);
  skip_symbol(":");
  expect(TokenType::block_end, "'%}'");
  Body body = statements(ends);
  if (drop_end) take();
  return body;
}

Statement Parser::statement() {
  const Position place = token().place;
  if (token().type != TokenType::name) refuse("expected the name of a tag");
  if (is_name("set")) return set();
  if (is_name("for")) return loop();
  if (is_name("if")) return choice();
  if (is_name("macro")) return macro();
  if (is_name("call")) return call_block();
  if (is_name("filter")) return filter_block();
  if (is_name("with")) return with();
  if (is_name("generation")) return generation();
  const std::string name = take().text;
  if (name == "break" || name == "continue") {
    if (loops_ == 0) refuse_at(place, fmt::format("{} outside of a loop", name));
    return {name == "break" ? StatementKind::leave : StatementKind::next, place};
  }
  for (const std::string_view known :
       {"include", "import", "from", "extends", "block", "autoescape"}) {
    if (name == known) {
      refuse_at(place, fmt::format("the tag {} is not supported in a chat template", name),
                ErrorKind::Unsupported);
    }
  }
  refuse_at(place, fmt::format("unknown tag {}; expected a tag of Jinja", name));
}

void Parser::print(Body& body) {
  take();
  bool first = true;
  while (token().type != TokenType::block_end) {
    if (!first) expect_symbol(",");
    const Position place = token().place;
    body.emplace_back(StatementKind::output, place).value = expression();
    first = false;
  }
}

// What is assigned to becomes names and references only.
Parser::Pointer Parser::as_target(Pointer expression) {
  for (Pointer& child : expression->children) {
    if (expression->kind == ExpressionKind::tuple) child = as_target(std::move(child));
  }
  if (expression->kind != ExpressionKind::tuple && expression->kind != ExpressionKind::name &&
      expression->kind != ExpressionKind::reference) {
    refuse_at(expression->place, "cannot be assigned to; expected the name of a variable");
  }
  return expression;
}

Parser::Pointer Parser::assigned(std::initializer_list<std::string_view> ends, bool references) {
  return as_target(targets(ends, references));
}

Statement Parser::set() {
  Statement node(StatementKind::set, take().place);
  node.target = assigned({}, true);
  if (skip_symbol("=")) {
    node.value = tuple(true);
    return node;
  }
  node.kind = StatementKind::set_block;
  node.value = filter(nullptr, false);
  node.body = body_until({"endset"}, true);
  return node;
}

Statement Parser::loop() {
  Statement node(StatementKind::loop, take().place);
  node.target = assigned({"in"}, false);
  expect_name("in");
  node.value = tuple(false, {"recursive"});
  if (skip_name("if")) {
    node.condition = std::make_unique<Condition>();
    node.condition->test = expression();
  }
  if (is_name("recursive")) {
    refuse_at(token().place, "recursive loops are not supported", ErrorKind::Unsupported);
  }
  ++loops_;
  node.body = body_until({"endfor", "else"}, false);
  --loops_;
  if (take().text == "else") node.otherwise = body_until({"endfor"}, true);
  return node;
}

Statement Parser::choice() {
  Statement node(StatementKind::choice, token().place);
  do {
    take();
    Branch branch;
    branch.test = tuple(false);
    branch.body = body_until({"elif", "else", "endif"}, false);
    node.branches.push_back(std::move(branch));
  } while (is_name("elif"));
  if (take().text == "else") node.branches.push_back({nullptr, body_until({"endif"}, true)});
  return node;
}

void Parser::signature(Function& function) {
  expect_symbol("(");
  std::unordered_set<std::string> known;
  while (!is_symbol(")")) {
    if (!function.parameters.empty()) expect_symbol(",");
    const Position place = token().place;
    std::string name = take_name("the name of a parameter");
    if (!known.insert(name).second) refuse_at(place, fmt::format("the parameter {} twice", name));
    function.parameters.push_back(std::move(name));
    if (skip_symbol("=")) {
      function.defaults.push_back(expression());
    } else if (!function.defaults.empty()) {
      refuse_at(place, "a parameter without a default behind one with a default");
    }
  }
  expect_symbol(")");
}

Statement Parser::macro() {
  Statement node(StatementKind::macro, take().place);
  node.target = make(ExpressionKind::name, token().place);
  node.name = node.target->name = take_name("the name of the macro");
  node.function = std::make_unique<Function>();
  signature(*node.function);
  const int outer = std::exchange(loops_, 0);
  node.body = body_until({"endmacro"}, true);
  loops_ = outer;
  return node;
}

Statement Parser::call_block() {
  Statement node(StatementKind::call, take().place);
  node.function = std::make_unique<Function>();
  if (is_symbol("(")) signature(*node.function);
  node.value = expression();
  if (node.value->kind != ExpressionKind::call) {
    refuse_at(node.value->place, "expected a call, such as name(argument)");
  }
  const int outer = std::exchange(loops_, 0);
  node.body = body_until({"endcall"}, true);
  loops_ = outer;
  return node;
}

Statement Parser::filter_block() {
  Statement node(StatementKind::filter, take().place);
  node.value = filter(nullptr, true);
  node.body = body_until({"endfilter"}, true);
  return node;
}

Statement Parser::with() {
  Statement node(StatementKind::with, take().place);
  while (token().type != TokenType::block_end) {
    if (!node.targets.empty()) expect_symbol(",");
    node.targets.push_back(assigned({}, false));
    expect_symbol("=");
    node.values.push_back(expression());
  }
  node.body = body_until({"endwith"}, true);
  return node;
}

Statement Parser::generation() {
  Statement node(StatementKind::generation, take().place);
  node.function = std::make_unique<Function>();
  const int outer = std::exchange(loops_, 0);
  node.body = body_until({"endgeneration"}, true);
  loops_ = outer;
  return node;
}

}  // namespace fovea::jinja
