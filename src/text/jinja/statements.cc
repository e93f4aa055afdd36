#include <unordered_set>

#include "jinja/parser.h"
#include "unicode/utf8.h"

namespace fovea::text::jinja {

void Parser::refuse_at(Position position, const std::string& what, ErrorKind kind) const {
  refuse_source(kind, name_, position, what);
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
  refuse_at(next.position, found + "; " + what);
}

void Parser::end_tag(TokenType type, std::string_view what) {
  if (!unknown_.empty() && !conditional_) {
    refuse_at(unknown_[0].position, unknown_[0].message, ErrorKind::Unsupported);
  }
  unknown_.clear();
  if (token().type != type) refuse(fmt::format("expected {}", what));
  take();
}

// Parses text and tags up to a tag of one of these names, which the caller parses.
Body Parser::statements(Names ends) {
  Body body;
  while (token().type != TokenType::end) {
    const LexedToken next = take();
    if (next.type == TokenType::data) {
      body.emplace_back(StatementKind::text, next.position).name = next.text;
    } else if (next.type == TokenType::variable_begin) {
      body.emplace_back(StatementKind::output, next.position).value = tuple();
      end_tag(TokenType::variable_end, "'}}'");
    } else {
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return is_name(end); })) {
        return body;
      }
      body.push_back(statement());
      end_tag(TokenType::block_end, "'%}'");
    }
  }
  if (ends.size() > 0) {
    refuse(fmt::format("expected {{% {} %}}", fmt::join(ends, " %} or {% ")));
  }
  return body;
}

// Parses the end of the opening tag and then statements(). `conditional`: whether a condition may
// skip the body.
Body Parser::body_until(Names ends, bool conditional) {
  const Level guard = nested();
  skip_symbol(":");
  end_tag(TokenType::block_end, "'%}'");
  const bool outer = std::exchange(conditional_, conditional);
  Body body = statements(ends);
  conditional_ = outer;
  return body;
}

Body Parser::function_body(std::string_view end, Function& function) {
  const int outer_loops = std::exchange(loops_, 0);
  const bool outer_uses = std::exchange(uses_caller_, false);
  ++functions_;
  Body body = body_until({end});
  --functions_;
  take();
  loops_ = outer_loops;
  function.uses_caller = uses_caller_;
  uses_caller_ = uses_caller_ || outer_uses;
  return body;
}

Statement Parser::statement() {
  const Position position = token().position;
  if (token().type != TokenType::name) refuse("expected the name of a tag");
  if (is_name("set")) return set();
  if (is_name("for")) return loop();
  if (is_name("if")) return choice();
  if (is_name("macro")) return macro();
  if (is_name("call")) return call_block();
  if (is_name("filter")) return filter_block();
  if (is_name("generation")) return generation();
  const std::string name = take().text;
  if (name == "break" || name == "continue") {
    if (loops_ == 0)
      refuse_at(position, fmt::format("{} outside of a loop; expected it in a for loop", name));
    return {name == "break" ? StatementKind::leave : StatementKind::next, position};
  }
  for (const std::string_view known : {"include", "import", "from", "extends", "block",
                                       "autoescape", "with", "print", "do", "trans"}) {
    if (name == known) {
      refuse_at(position, fmt::format("the tag {} is not supported in a chat template", name),
                ErrorKind::Unsupported);
    }
  }
  refuse_at(position, fmt::format("unknown tag {}; expected a tag of Jinja", name));
}

Statement Parser::set() {
  Statement node(StatementKind::set, take().position);
  node.target = tuple_of(&Parser::target);
  if (skip_symbol("=")) {
    node.value = tuple();
    return node;
  }
  node.kind = StatementKind::set_block;
  while (skip_symbol("|")) node.value = filter(std::move(node.value));
  node.body = body_until({"endset"});
  take();
  return node;
}

Statement Parser::loop() {
  Statement node(StatementKind::loop, take().position);
  ++loops_;
  node.target = tuple_of(&Parser::loop_target, "in");
  if (!skip_name("in")) refuse("expected 'in'");
  node.value = tuple_of(&Parser::without_condition, "recursive");
  if (skip_name("if")) node.test = expression();
  if (is_name("recursive")) {
    refuse_at(token().position, "recursive loops are not supported", ErrorKind::Unsupported);
  }
  node.body = body_until({"endfor", "else"});
  --loops_;
  if (take().text == "else") {
    node.otherwise = body_until({"endfor"});
    take();
  }
  return node;
}

Statement Parser::choice() {
  Statement node(StatementKind::choice, token().position);
  const bool outer = std::exchange(conditional_, true);
  do {
    take();
    Branch branch;
    branch.test = tuple_of(&Parser::without_condition);
    branch.body = body_until({"elif", "else", "endif"}, true);
    node.branches.push_back(std::move(branch));
  } while (is_name("elif"));
  if (take().text == "else") {
    node.branches.push_back({nullptr, body_until({"endif"}, true)});
    take();
  }
  conditional_ = outer;
  return node;
}

void Parser::signature(Function& function) {
  expect_symbol("(");
  std::unordered_set<std::string> known;
  while (!is_symbol(")")) {
    if (!function.parameters.empty()) expect_symbol(",");
    const Position position = token().position;
    std::string name = take_name("the name of a parameter");
    if (!known.insert(name).second) {
      refuse_at(position,
                fmt::format("the parameter {} is repeated; expected distinct names", name));
    }
    if (name == "caller") {
      refuse_at(position, "a parameter named caller is not supported", ErrorKind::Unsupported);
    }
    function.parameters.push_back(std::move(name));
    if (skip_symbol("=")) {
      function.defaults.push_back(expression());
    } else if (!function.defaults.empty()) {
      refuse_at(position,
                "a parameter without a default after one with a default; expected a default");
    }
  }
  expect_symbol(")");
}

Statement Parser::macro() {
  Statement node(StatementKind::macro, take().position);
  node.name = take_name("the name of the macro");
  signature(node.function);
  node.body = function_body("endmacro", node.function);
  return node;
}

Statement Parser::call_block() {
  Statement node(StatementKind::call, take().position);
  if (is_symbol("(")) signature(node.function);
  node.value = expression();
  if (node.value->kind != ExpressionKind::call) {
    refuse_at(node.value->position, "expected a call, such as name(argument)");
  }
  node.body = function_body("endcall", node.function);
  return node;
}

Statement Parser::filter_block() {
  Statement node(StatementKind::filter, take().position);
  do {
    node.value = filter(std::move(node.value));
  } while (skip_symbol("|"));
  node.body = body_until({"endfilter"});
  take();
  return node;
}

Statement Parser::generation() {
  Statement node(StatementKind::generation, take().position);
  const int outer = std::exchange(loops_, 0);
  node.body = body_until({"endgeneration"});
  take();
  loops_ = outer;
  return node;
}

}  // namespace fovea::text::jinja
