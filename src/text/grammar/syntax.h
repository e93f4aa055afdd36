#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_schema.h"

namespace fovea::text {

// The syntax tree of a regular expression or of a rule of a grammar.
struct SyntaxNode {
  enum Kind : uint8_t { characters, sequence, choice, repetition, rule } kind;
  using Ranges = std::vector<std::pair<char32_t, char32_t>>;  // sorted, without overlaps
  Ranges ranges = {};                                         // characters: one of these
  std::vector<std::unique_ptr<SyntaxNode>> parts = {};        // of a repetition: one
  int64_t least = 0;                                          // repetition
  std::optional<int64_t> most = {};                           // unset: no upper limit
  size_t index = 0;                                           // rule
  bool empty = false;                                         // set by lower()
};
using Syntax = std::unique_ptr<SyntaxNode>;
struct Counts {  // of a repetition
  int64_t least = 0;
  std::optional<int64_t> most = {};
};
Syntax repetition(Syntax part, const Counts& counts);
Syntax syntax_node(SyntaxNode::Kind kind);  // without parts
Syntax one_character_of(SyntaxNode::Ranges ranges);

// Returns sorted ranges without overlaps, or all other characters.
SyntaxNode::Ranges normal_ranges(SyntaxNode::Ranges ranges);
SyntaxNode::Ranges other_characters(const SyntaxNode::Ranges& ranges);

// Returns the grammar of rule 0. `name` is that of the text in errors. Throws InvalidArgument if a
// rule is left-recursive or the grammar too large.
SchemaGrammar lowered(std::vector<Syntax> rules, const char* name, const Grammar::Bytes& usable);

// Adds the rules to a grammar, and returns rule 0.
Grammar::Symbol lower(std::vector<Syntax> rules, const char* name, Grammar& grammar);

// A set of characters and a rule take as much work as these numbers of letters.
constexpr size_t kPartsOfSet = 3, kPartsOfRule = 2;

// The characters of a text, for parsers. Errors name the line and the character in it.
class SyntaxReader {
 public:
  // Throws InvalidArgument if the text is not UTF-8 or too long.
  SyntaxReader(std::string_view text, const char* name);

  bool at_end() const { return at_ >= text_.size(); }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : char32_t{0};
  }
  char32_t take();
  bool take_if(char32_t character);
  bool take_if(std::string_view ascii);
  void expect(char32_t character, const char* expected);
  // Reads `digits` hexadecimal digits of a character's number.
  char32_t hexadecimal(int digits);
  // Reads a number in decimal digits, at most 100,000.
  int64_t number();
  // Reads *, +, ?, {m}, {m,} or {m,n}; unset if none of them follows.
  std::optional<Counts> quantifier();
  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const;

  // Counts atoms, alternatives and rules, whose number is limited before the work on them begins.
  void count_parts(size_t number = 1);

  // Counts the depth of nesting, which is limited.
  class Nesting {
   public:
    explicit Nesting(SyntaxReader& reader);
    ~Nesting() { --reader_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    SyntaxReader& reader_;
  };

 private:
  Counts counts();

  std::u32string text_;
  const char* name_;
  size_t at_ = 0;
  size_t parts_ = 0;
  int depth_ = 0;
};

struct RegexWay {                           // an alternative of a regular expression
  Syntax text;                              // without the anchors
  bool from_start = false, to_end = false;  // it begins with ^, and ends with $
};
// Throws InvalidArgument if the expression is invalid or not supported; `name` begins the message.
std::vector<RegexWay> parse_regex(std::string_view regex, const char* name);

// Returns the grammar of the texts that a regular expression matches as a whole.
SchemaGrammar regex_grammar(std::string_view regex, const Grammar::Bytes& usable);
// Returns the grammar that a text in llama.cpp's notation (GBNF) describes; its first rule is root.
SchemaGrammar gbnf_grammar(std::string_view text, const Grammar::Bytes& usable);
// Returns the grammar of these texts.
SchemaGrammar choice_grammar(const std::vector<std::string>& texts, const Grammar::Bytes& usable);

}  // namespace fovea::text
