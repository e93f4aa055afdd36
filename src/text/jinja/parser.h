#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/syntax.h"

namespace fovea::text::jinja {

enum class TokenType {
  data,  // text between tags, after white space control
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // `value` has the text
  number,  // `value` has the number
  symbol,
  end,
};

struct LexedToken {
  TokenType type;
  std::string text;  // of a name, a symbol or data; the source of a string or number
  Value value;
  Position position;
};

// Returns the tokens of a template; the last one is `end`. As with trim_blocks and lstrip_blocks,
// the indentation before a block tag or comment that starts a line, and a line break directly after
// a block tag or comment, are removed. Throws BadFile if the source is not valid.
std::vector<LexedToken> lex(std::string_view source, const std::string& name);

constexpr int kParseDepth = 64;        // nested blocks and brackets; real templates stay below 20
constexpr int kExpressionDepth = 250;  // levels of an expression's tree; a long sum has many

// A recursive-descent parser for the grammar of Jinja 3.1.
class Parser {
 public:
  Parser(std::vector<LexedToken> tokens, const std::string& name)
      : tokens_(std::move(tokens)), name_(name) {}
  Body run() { return statements({}); }

 private:
  using Pointer = ExpressionPointer;
  using Names = std::initializer_list<std::string_view>;

  // Enters a bracket or a block.
  Level nested() {
    if (depth_ >= kParseDepth) {
      refuse(fmt::format("nested too deeply; expected at most {} levels", kParseDepth));
    }
    return Level(depth_);
  }

  const LexedToken& token(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  LexedToken take() {
    if (token().type == TokenType::end) return token();
    return std::move(tokens_[at_++]);
  }
  bool is(TokenType type, std::string_view text, size_t ahead = 0) const {
    return token(ahead).type == type && token(ahead).text == text;
  }
  bool is_symbol(std::string_view text) const { return is(TokenType::symbol, text); }
  bool is_name(std::string_view text) const { return is(TokenType::name, text); }
  bool skip(TokenType type, std::string_view text) { return is(type, text) && (take(), true); }
  bool skip_symbol(std::string_view text) { return skip(TokenType::symbol, text); }
  bool skip_name(std::string_view text) { return skip(TokenType::name, text); }
  void expect_symbol(std::string_view text) {
    if (!skip_symbol(text)) refuse(fmt::format("expected '{}'", text));
  }
  std::string take_name(std::string_view what) {
    if (token().type != TokenType::name) refuse(fmt::format("expected {}", what));
    return take().text;
  }
  void end_tag(TokenType type, std::string_view what);
  [[noreturn]] void refuse(const std::string& what) const;  // the message names the current token
  [[noreturn]] void refuse_at(Position position, const std::string& what,
                              ErrorKind kind = ErrorKind::BadFile) const;

  // Statements: statements.cc.
  Body statements(Names ends);
  Body body_until(Names ends, bool conditional = false);
  Body function_body(std::string_view end, Function& function);
  Statement statement();
  Statement set();
  Statement loop();
  Statement choice();
  Statement macro();
  Statement call_block();
  Statement filter_block();
  Statement generation();
  void signature(Function& function);

  // Expressions: expressions.cc.
  Pointer make(ExpressionKind kind, Position position, std::vector<Pointer> children = {}) const;
  void deepen(Expression& node, const Pointer& child) const;
  // `item` parses each item of a tuple. The name `end` also ends the tuple, like ")" or the end of
  // a tag.
  Pointer tuple_of(Pointer (Parser::*item)(), std::string_view end = {});
  Pointer tuple() { return tuple_of(&Parser::expression); }
  Pointer expression();
  Pointer binary(int level);
  Pointer without_condition() { return binary(0); }
  Pointer unary(bool filters = true);
  Pointer primary();
  Pointer named();
  Pointer target();
  Pointer loop_target();
  Pointer list_or_dict();
  Pointer postfix(Pointer node, bool filters);
  Pointer subscript(Pointer node);
  Pointer index_or_slice(Pointer node, Position position);
  Pointer filter(Pointer node);
  Pointer test(Pointer node);
  void arguments(Expression& call);
  void note_unknown(const Expression& node);

  std::vector<LexedToken> tokens_;
  std::string name_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;             // open loops of the current function, for break and continue
  int functions_ = 0;         // open macros and call blocks
  bool uses_caller_ = false;  // whether the current function uses `caller`
  // Whether a condition may skip the current tag. If not, an unknown filter or test is refused when
  // the template is parsed.
  bool conditional_ = false;
  struct Unknown {
    Position position;
    std::string message;
  };
  std::vector<Unknown> unknown_;  // unknown filters and tests in the current tag
};

}  // namespace fovea::text::jinja
