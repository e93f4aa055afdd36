#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "jinja/lexer.h"
#include "jinja/syntax.h"

namespace fovea::jinja {

constexpr int kParseDepth = 64;        // nested blocks and brackets; real templates stay below 20
constexpr int kExpressionDepth = 250;  // of a tree, which a long sum of strings makes deep

// Recursive descent, with the grammar of Jinja 3.1.
class Parser {
 public:
  Parser(std::vector<LexedToken> tokens, const std::string& name)
      : tokens_(std::move(tokens)), name_(name) {}
  Body run();

 private:
  using Pointer = ExpressionPointer;
  class Nested;  // counts the depth of the recursion

  // Tokens.
  const LexedToken& token(size_t ahead = 0) const;
  LexedToken take();
  bool is_symbol(std::string_view symbol, size_t ahead = 0) const;
  bool is_name(std::string_view name, size_t ahead = 0) const;
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string take_name(std::string_view what);
  void expect(TokenType type, std::string_view what);
  [[noreturn]] void refuse(const std::string& what) const;
  [[noreturn]] void refuse_at(Position place, const std::string& what,
                              ErrorKind kind = ErrorKind::BadFile) const;

  // Statements: statements.cc.
  Body body_until(std::initializer_list<std::string_view> ends, bool drop_end);
  Body statements(std::initializer_list<std::string_view> ends);
  Statement statement();
  Statement set();
  Statement loop();
  Statement choice();
  Statement macro();
  Statement call_block();
  Statement filter_block();
  Statement with();
  Statement generation();
  void print(Body& body);
  void signature(Function& function);
  Pointer assigned(std::initializer_list<std::string_view> ends, bool references);
  Pointer as_target(Pointer expression);

  // Expressions: expressions.cc.
  Pointer make(ExpressionKind kind, Position place, std::vector<Pointer> children = {}) const;
  Pointer tuple(bool conditional, std::initializer_list<std::string_view> ends = {},
                bool in_brackets = false);
  Pointer targets(std::initializer_list<std::string_view> ends, bool references);
  bool ends_tuple(std::initializer_list<std::string_view> ends) const;
  Pointer expression();
  Pointer disjunction();
  Pointer conjunction();
  Pointer negation();
  Pointer comparison();
  Pointer sum();
  Pointer concatenation();
  Pointer product();
  Pointer power();
  Pointer unary(bool filters = true);
  Pointer primary(bool references = false);
  Pointer named(const LexedToken& name, bool references);
  Pointer list();
  Pointer dict();
  Pointer postfix(Pointer node);
  Pointer filtered(Pointer node);
  Pointer subscript(Pointer node);
  Pointer subscripted(Pointer node, Position place);
  Pointer filter(Pointer node, bool start_inline);
  Pointer test(Pointer node);
  void arguments(Expression& call);
  // `keywords` are those of the call so far.
  void argument(Expression& call, std::unordered_set<std::string>& keywords);
  std::string dotted_name(std::string_view what);
  static void deepen(Expression& node, const Pointer& child);
  void finish(const Expression& node) const;

  std::vector<LexedToken> tokens_;
  std::string name_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;  // open loops of the current function: where break and continue may stand
};

// Counts one level of the parser's recursion.
class Parser::Nested {
 public:
  explicit Nested(Parser& parser) : parser_(parser) {
    if (++parser.depth_ > kParseDepth) {
      parser.refuse(fmt::format("nested too deeply; expected at most {} levels", kParseDepth));
    }
  }
  ~Nested() { --parser_.depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  Parser& parser_;
};

}  // namespace fovea::jinja
