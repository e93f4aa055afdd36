#include <utility>
#include <vector>

#include "base/error.h"
#include "grammar/syntax.h"

namespace fovea::text {
namespace {

using Ranges = SyntaxNode::Ranges;

const Ranges kDigitsSet = {{'0', '9'}};
const Ranges kWordSet = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const Ranges kSpaceSet = {{'\t', '\r'}, {' ', ' '}};
const Ranges kNewlineSet = {{'\n', '\n'}};

// Parses the regular part of the usual notation, such as that of Python's re. Anchors may stand at
// the beginning and the end of the whole alternatives only.
class RegexParser {
 public:
  RegexParser(std::string_view regex, const char* name) : reader_(regex, name) {}

  std::vector<RegexWay> whole() {
    std::vector<RegexWay> ways;
    do {
      const bool from_start = reader_.take_if(U'^');
      to_end_ = false;
      Syntax text = sequence(true);
      ways.push_back({std::move(text), from_start, to_end_});
    } while (reader_.take_if(U'|'));
    if (!reader_.at_end()) reader_.refuse("a closing parenthesis alone", "the end");
    return ways;
  }

 private:
  Syntax choice() {
    const SyntaxReader::Nesting nesting(reader_);
    Syntax all = syntax_node(SyntaxNode::choice);
    do all->parts.push_back(sequence(false));
    while (reader_.take_if(U'|'));
    return all->parts.size() == 1 ? std::move(all->parts[0]) : std::move(all);
  }

  // `whole`: of an alternative of the whole expression, which may end with $.
  Syntax sequence(bool whole) {
    reader_.count_parts();
    Syntax all = syntax_node(SyntaxNode::sequence);
    while (!reader_.at_end() && reader_.peek() != '|' && reader_.peek() != ')') {
      const char32_t next = reader_.peek(1);
      if (whole && reader_.peek() == '$' && (next == 0 || next == '|')) {
        reader_.take();
        to_end_ = true;
        break;
      }
      all->parts.push_back(repeated(atom()));
    }
    return all;
  }

  Syntax repeated(Syntax part) {
    const std::optional<Counts> counts = reader_.quantifier();
    if (!counts) return part;
    if (reader_.peek() == '+') reader_.refuse("a possessive quantifier", "a plain one");
    reader_.take_if(U'?');  // a lazy quantifier matches the same texts
    return repetition(std::move(part), *counts);
  }

  Syntax atom() {
    reader_.count_parts();
    const char32_t c = reader_.take();
    switch (c) {
      case '(': {
        if (reader_.take_if(U'?') && !reader_.take_if(U':'))
          reader_.refuse("a group with a condition", "a group ( ) or (?: )");
        Syntax group = choice();
        reader_.expect(U')', "a closing parenthesis");
        return group;
      }
      case '[': return one_character_of(bracketed());
      case '.': return one_character_of(other_characters(kNewlineSet));
      case '\\': return one_character_of(escaped(false));
      case '^':
      case '$':
        reader_.refuse("an anchor inside a group or a sequence",
                       "anchors at the ends of whole alternatives");
      case '*':
      case '+':
      case '?':
      case '{': reader_.refuse("nothing to repeat", "a character or a group before a quantifier");
      default: return one_character_of({{c, c}});
    }
  }

  // Reads what follows a backslash.
  Ranges escaped(bool in_brackets) {
    const char32_t c = reader_.take();
    const auto one = [](char32_t character) { return Ranges{{character, character}}; };
    switch (c) {
      case 'd': return kDigitsSet;
      case 'D': return other_characters(kDigitsSet);
      case 'w': return kWordSet;
      case 'W': return other_characters(kWordSet);
      case 's': return kSpaceSet;
      case 'S': return other_characters(kSpaceSet);
      case 'n': return one('\n');
      case 'r': return one('\r');
      case 't': return one('\t');
      case 'f': return one('\f');
      case 'v': return one('\v');
      case '0': return one(0);
      case 'x': return one(reader_.hexadecimal(2));
      case 'u': return one(reader_.hexadecimal(4));
      default: break;
    }
    if (c == 'b' && in_brackets) return one('\b');
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (letter)
      reader_.refuse("an escape that is not supported",
                     R"(\d, \w, \s, \n, \r, \t, \f, \v, \x or \u)");
    return one(c);
  }

  Ranges bracketed() {
    reader_.count_parts(kPartsOfSet);
    const bool negated = reader_.take_if(U'^');
    Ranges all;
    for (bool first = true; first || reader_.peek() != ']'; first = false) {
      if (reader_.at_end()) reader_.refuse("the end", "a closing bracket");
      if (reader_.peek() == '[' && reader_.peek(1) == ':')
        reader_.refuse("a POSIX class", "a set such as [a-z]");
      const Ranges low = single();
      const bool range = reader_.peek() == '-' && reader_.peek(1) != ']' && low.size() == 1 &&
                         low[0].first == low[0].second;
      if (!range) {
        all.insert(all.end(), low.begin(), low.end());
        continue;
      }
      reader_.take();
      const Ranges high = single();
      if (high.size() != 1 || high[0].first != high[0].second || high[0].first < low[0].first)
        reader_.refuse("a range that is not ascending", "two characters");
      all.emplace_back(low[0].first, high[0].second);
    }
    reader_.take();
    all = normal_ranges(std::move(all));
    return negated ? other_characters(all) : all;
  }

  Ranges single() {
    const char32_t c = reader_.take();
    return c == '\\' ? escaped(true) : Ranges{{c, c}};
  }

  SyntaxReader reader_;
  bool to_end_ = false;
};

}  // namespace

std::vector<RegexWay> parse_regex(std::string_view regex, const char* name) {
  return RegexParser(regex, name).whole();
}

SchemaGrammar regex_grammar(std::string_view regex, const Grammar::Bytes& usable) {
  Syntax choice = syntax_node(SyntaxNode::choice);
  for (RegexWay& way : parse_regex(regex, "regex")) choice->parts.push_back(std::move(way.text));
  std::vector<Syntax> rules;
  rules.push_back(std::move(choice));
  return lowered(std::move(rules), "regex", usable);
}

}  // namespace fovea::text
