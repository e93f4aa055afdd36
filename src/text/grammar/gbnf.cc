#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "grammar/syntax.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using Ranges = SyntaxNode::Ranges;

// Parses llama.cpp's notation of grammars: name ::= alternatives, with texts in quotes, sets of
// characters in brackets, groups and repetitions. Comments begin with #.
class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : reader_(text, "grammar") { number_of("root"); }

  std::vector<Syntax> rules() {
    skip(true);
    while (!reader_.at_end()) rule();
    const auto missing = std::ranges::find_if(rules_, [](const Syntax& rule) { return !rule; });
    for (const auto& [name, number] : numbers_)
      if (number == static_cast<size_t>(missing - rules_.begin()))
        fail(ErrorKind::InvalidArgument, "grammar: rule {} is missing; expected {} ::= ...", name,
             name);
    return std::move(rules_);
  }

 private:
  size_t number_of(const std::string& name) {
    const auto [found, added] = numbers_.emplace(name, rules_.size());
    if (added) rules_.emplace_back();
    return found->second;
  }

  // Skips spaces and comments, and with `lines` also the ends of lines.
  void skip(bool lines) {
    while (true) {
      if (reader_.peek() == '#')
        while (!reader_.at_end() && reader_.peek() != '\n') reader_.take();
      const char32_t c = reader_.peek();
      if (reader_.at_end() || !(c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))))
        return;
      reader_.take();
    }
  }

  static bool in_name(char32_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }

  std::string name() {
    std::string text;
    while (in_name(reader_.peek())) text += static_cast<char>(reader_.take());
    if (text.empty()) reader_.refuse("not a name", "the name of a rule");
    return text;
  }

  void rule() {
    reader_.count_parts(kPartsOfRule);
    const std::string named = name();
    const size_t number = number_of(named);
    if (rules_[number]) reader_.refuse("rule " + named + " is repeated", "each rule once");
    skip(false);
    if (!reader_.take_if("::=")) reader_.refuse("another character", "::= after a name");
    skip(true);
    Syntax body = choice(false);
    rules_[number] = std::move(body);  // number_of() may have moved the rules
    if (!reader_.at_end() && reader_.peek() != '\n' && reader_.peek() != '\r')
      reader_.refuse("another character", "the end of a rule");
    skip(true);
  }

  Syntax choice(bool in_group) {
    const SyntaxReader::Nesting nesting(reader_);
    Syntax all = syntax_node(SyntaxNode::choice);
    all->parts.push_back(sequence(in_group));
    while (reader_.take_if(U'|')) {
      skip(true);
      all->parts.push_back(sequence(in_group));
    }
    return all->parts.size() == 1 ? std::move(all->parts[0]) : std::move(all);
  }

  Syntax sequence(bool in_group) {
    reader_.count_parts();
    Syntax all = syntax_node(SyntaxNode::sequence);
    while (true) {
      const char32_t c = reader_.peek();
      if (reader_.at_end() || !(c == '"' || c == '[' || c == '(' || c == '.' || in_name(c)))
        return all;
      all->parts.push_back(repeated(atom(), in_group));
    }
  }

  Syntax repeated(Syntax part, bool in_group) {
    skip(in_group);
    const std::optional<Counts> counts = reader_.quantifier();
    if (!counts) return part;
    skip(in_group);
    return repetition(std::move(part), *counts);
  }

  Syntax atom() {
    reader_.count_parts();
    if (in_name(reader_.peek())) {
      Syntax call = syntax_node(SyntaxNode::rule);
      call->index = number_of(name());
      return call;
    }
    const char32_t c = reader_.take();
    if (c == '"') return quoted();
    if (c == '.') return one_character_of(other_characters({}));
    if (c == '[') return one_character_of(bracketed());
    skip(true);
    Syntax group = choice(true);
    reader_.expect(U')', "a closing parenthesis");
    return group;
  }

  Syntax quoted() {
    Syntax text = syntax_node(SyntaxNode::sequence);
    while (!reader_.take_if(U'"')) {
      reader_.count_parts();
      const char32_t c = character();
      text->parts.push_back(one_character_of({{c, c}}));
    }
    return text;
  }

  Ranges bracketed() {
    reader_.count_parts(kPartsOfSet);
    const bool negated = reader_.take_if(U'^');
    Ranges all;
    while (!reader_.take_if(U']')) {
      const char32_t first = character();
      char32_t last = first;
      if (reader_.peek() == '-' && reader_.peek(1) != ']') {
        reader_.take();
        last = character();
      }
      if (last < first) reader_.refuse("a range that is not ascending", "the smaller one first");
      all.emplace_back(first, last);
    }
    all = normal_ranges(std::move(all));
    return negated ? other_characters(all) : all;
  }

  char32_t character() {
    const char32_t c = reader_.take();
    if (c == '\n') reader_.refuse("the end of the line", "a closing quote or bracket");
    if (c != '\\') return c;
    const char32_t escape = reader_.take();
    switch (escape) {
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'x': return reader_.hexadecimal(2);
      case 'u': return reader_.hexadecimal(4);
      case 'U': return reader_.hexadecimal(8);
      case '"':
      case '\\':
      case '[':
      case ']':
      case '-':
      case '^': return escape;
      default:
        reader_.refuse("an unknown escape", R"(\n, \r, \t, \x, \u, \U, or \ before " \ [ ])");
    }
  }

  SyntaxReader reader_;
  std::unordered_map<std::string, size_t> numbers_;
  std::vector<Syntax> rules_;  // by number; null = not defined yet
};

}  // namespace

SchemaGrammar gbnf_grammar(std::string_view text, const Grammar::Bytes& usable) {
  return lowered(GbnfParser(text).rules(), "grammar", usable);
}

}  // namespace fovea::text
