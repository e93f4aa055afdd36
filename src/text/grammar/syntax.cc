#include "grammar/syntax.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "grammar/grammar_rules.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr size_t kMostText = size_t{1} << 20;
constexpr int kMostNesting = 64;
constexpr size_t kMostParts = 100'000;  // as many as a grammar may have symbols
constexpr int64_t kMostCount = 100'000;
constexpr char32_t kLastCharacter = utf8::code_points - 1;
constexpr char32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;
// The last characters of 2, 3 and 4 bytes in UTF-8, and the last one before the surrogates, which
// have no bytes.
constexpr std::array<char32_t, 4> kLasts = {0x7FF, kFirstSurrogate - 1, 0xFFFF, kLastCharacter};

// Propagates from the nodes that are certainly empty to those that contain or call them.
class EmptyNodes {
 public:
  explicit EmptyNodes(const std::vector<Syntax>& rules) : callers_(rules.size()) {
    for (size_t i = 0; i < rules.size(); ++i) add(*rules[i], kNone, i);
    while (!found_.empty()) {
      const Node& node = nodes_[found_.back()];
      found_.pop_back();
      node.syntax->empty = true;
      if (node.parent != kNone) {
        return_empty(node.parent);
      } else {
        for (const size_t caller : callers_[node.rule]) return_empty(caller);
      }
    }
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Node {
    SyntaxNode* syntax;
    size_t parent;   // kNone: the body of a rule
    size_t rule;     // that contains the node
    size_t missing;  // parts that must be empty before the node is; 0 = it is
  };

  void add(SyntaxNode& syntax, size_t parent, size_t rule) {
    const size_t number = nodes_.size();
    nodes_.push_back({&syntax, parent, rule, missing(syntax)});
    if (nodes_.back().missing == 0) found_.push_back(number);
    if (syntax.kind == SyntaxNode::rule) callers_[syntax.index].push_back(number);
    for (const Syntax& part : syntax.parts) add(*part, number, rule);
  }

  static size_t missing(const SyntaxNode& node) {
    if (node.kind == SyntaxNode::sequence) return node.parts.size();
    return node.kind == SyntaxNode::repetition && node.least == 0 ? 0 : 1;
  }

  void return_empty(size_t number) {
    size_t& missing = nodes_[number].missing;
    if (missing == 0) return;
    --missing;
    if (missing == 0) found_.push_back(number);
  }

  std::vector<Node> nodes_;
  std::vector<size_t> found_;                 // empty nodes that are not yet propagated
  std::vector<std::vector<size_t>> callers_;  // by rule: the nodes that call it
};

// Sets SyntaxNode::empty of the nodes that can match the empty text. The time is linear, also for
// rules that call one another.
void find_empty_nodes(std::vector<Syntax>& rules) { EmptyNodes of(rules); }

// Converts syntax trees to rules over bytes. A repetition of a part that may be empty would be left
// recursive, so there are two conversions of a node: of all its texts, and of those that are not
// empty.
class Lowering {
 public:
  Lowering(const std::vector<Syntax>& syntax, const char* name, Grammar& grammar)
      : syntax_(syntax), rules_(grammar, name), grammar_(grammar) {
    for (size_t i = 0; i < syntax.size(); ++i) called_.push_back(rules_.rule());
    for (size_t i = 0; i < syntax.size(); ++i) rules_.add(called_[i], {all(*syntax_[i])});
    while (!waiting_.empty()) {
      const size_t rule = waiting_.back();
      waiting_.pop_back();
      rules_.add(filled_.at(rule), {filled(*syntax_[rule])});
    }
  }
  int32_t root() const { return called_[0].index; }

 private:
  // Returns all texts of a node.
  Symbols all(const SyntaxNode& node) {
    switch (node.kind) {
      case SyntaxNode::characters: return {characters(node.ranges)};
      case SyntaxNode::sequence: {
        Symbols sequence;
        for (const Syntax& part : node.parts) sequence = std::move(sequence) + all(*part);
        return sequence;
      }
      case SyntaxNode::choice: {
        std::vector<Symbols> ways;
        for (const Syntax& part : node.parts) ways.push_back(all(*part));
        return {rules_.one_of(ways)};
      }
      case SyntaxNode::repetition: return {repetition(node, false)};
      case SyntaxNode::rule: return {called_[node.index]};
    }
    return {};
  }

  // Returns the texts of a node that are not empty.
  Symbols filled(const SyntaxNode& node) {
    if (!node.empty) return all(node);
    switch (node.kind) {
      case SyntaxNode::sequence: return {filled_sequence(node)};
      case SyntaxNode::choice: {
        std::vector<Symbols> ways;
        for (const Syntax& part : node.parts)
          if (!is_always_empty(*part)) ways.push_back(filled(*part));
        return {rules_.one_of(ways)};
      }
      case SyntaxNode::repetition: return {repetition(node, true)};
      case SyntaxNode::rule: {
        const auto [found, added] = filled_.try_emplace(node.index);
        if (added) {
          found->second = rules_.rule();
          waiting_.push_back(node.index);
        }
        return {found->second};
      }
      case SyntaxNode::characters: break;
    }
    return {};
  }

  static bool is_always_empty(const SyntaxNode& node) {
    return node.kind == SyntaxNode::sequence && node.parts.empty();
  }

  // All parts can be empty: a text begins with the first part that is not. Built from the end.
  Symbol filled_sequence(const SyntaxNode& node) {
    Symbol rest = rules_.one_of({{}}), with_text = rules_.rule();  // no way: never matches
    for (size_t i = node.parts.size(); i-- > 0;) {
      const Symbols part = filled(*node.parts[i]);
      with_text = rules_.one_of({part + Symbols{rest}, {with_text}});
      rest = rules_.one_of({{with_text}, {}});
    }
    return with_text;
  }

  Symbol repetition(const SyntaxNode& node, bool is_filled) {
    const SyntaxNode& part = *node.parts[0];
    const Symbols one = {rules_.one_of({filled(part)})};
    const int64_t least = part.empty ? 0 : node.least;
    if (node.most == 0)
      return rules_.one_of(is_filled ? std::vector<Symbols>{} : std::vector<Symbols>{{}});
    return rules_.repeated(one, one, std::max<int64_t>(least, is_filled ? 1 : 0), node.most);
  }

  // Returns the UTF-8 sequences of characters.
  Symbol characters(const SyntaxNode::Ranges& ranges) {
    const auto [found, added] = characters_.try_emplace(ranges);
    if (!added) return found->second;
    std::vector<Symbols> ways;
    Grammar::Bytes single;
    for (const auto& [first, last] : ranges) {
      for (char32_t c = first; c <= std::min<char32_t>(last, 0x7F); ++c) single.set(c);
      char32_t begin = std::max<char32_t>(first, 0x80);
      for (const char32_t end : kLasts) {
        if (begin <= std::min(last, end)) add_bytes(begin, std::min(last, end), ways);
        begin =
            std::max<char32_t>(begin, end + 1 == kFirstSurrogate ? kLastSurrogate + 1 : end + 1);
      }
    }
    if (single.any()) ways.push_back({grammar_.one_of(single)});
    return found->second = rules_.one_of(ways);
  }

  // Adds the sequences for characters of equally many bytes: the range is divided until all bytes
  // but the first that differs take all values.
  void add_bytes(char32_t first, char32_t last, std::vector<Symbols>& ways) {
    std::string low, high;
    utf8::append(low, first);
    utf8::append(high, last);
    const auto size = static_cast<int>(low.size());
    for (int i = 1; i < size; ++i) {
      const char32_t mask = (char32_t{1} << (6 * i)) - 1;
      if ((first & ~mask) == (last & ~mask)) continue;  // the bytes before the last i are equal
      if ((first & mask) != 0) {
        add_bytes(first, first | mask, ways);
        return add_bytes((first | mask) + 1, last, ways);
      }
      if ((last & mask) != mask) {
        add_bytes(first, (last & ~mask) - 1, ways);
        return add_bytes(last & ~mask, last, ways);
      }
    }
    Symbols bytes;
    for (size_t i = 0; i < low.size(); ++i)
      bytes.push_back(grammar_.range(static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])));
    ways.push_back(std::move(bytes));
  }

  const std::vector<Syntax>& syntax_;
  GrammarRules rules_;
  Grammar& grammar_;
  std::vector<Symbol> called_;       // by rule
  std::map<size_t, Symbol> filled_;  // by rule: its texts that are not empty
  std::vector<size_t> waiting_;      // rules of filled_ without alternatives yet
  std::map<SyntaxNode::Ranges, Symbol> characters_;
};

}  // namespace

SyntaxNode::Ranges normal_ranges(SyntaxNode::Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  SyntaxNode::Ranges merged;
  for (const auto& [first, last] : ranges) {
    if (merged.empty() || first > merged.back().second + 1)
      merged.emplace_back(first, last);
    else
      merged.back().second = std::max(merged.back().second, last);
  }
  return merged;
}

SyntaxNode::Ranges other_characters(const SyntaxNode::Ranges& ranges) {
  SyntaxNode::Ranges others;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (next < first) others.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCharacter) others.emplace_back(next, kLastCharacter);
  return others;
}

Syntax syntax_node(SyntaxNode::Kind kind) { return std::make_unique<SyntaxNode>(SyntaxNode{kind}); }

Syntax one_character_of(SyntaxNode::Ranges ranges) {
  Syntax made = syntax_node(SyntaxNode::characters);
  made->ranges = normal_ranges(std::move(ranges));
  return made;
}

Syntax repetition(Syntax part, const Counts& counts) {
  auto all = std::make_unique<SyntaxNode>(SyntaxNode{SyntaxNode::repetition});
  all->parts.push_back(std::move(part));
  all->least = counts.least;
  all->most = counts.most;
  return all;
}

Symbol lower(std::vector<Syntax> rules, const char* name, Grammar& grammar) {
  find_empty_nodes(rules);
  return Grammar::call(Lowering(rules, name, grammar).root());
}

SchemaGrammar lowered(std::vector<Syntax> rules, const char* name, const Grammar::Bytes& usable) {
  auto grammar = std::make_shared<Grammar>(usable);
  const int32_t root = lower(std::move(rules), name, *grammar).index;
  try {
    grammar->finish();
  } catch (const Error& error) {
    const std::string message = error.what();
    throw Error(error.kind(), name + message.substr(std::min(message.find(':'), message.size())));
  }
  return {std::move(grammar), root};
}

SyntaxReader::SyntaxReader(std::string_view text, const char* name) : name_(name) {
  check(text.size() <= kMostText, "{}: {} bytes; expected at most {}", name, text.size(),
        kMostText);
  const size_t valid = utf8::valid_prefix(text);
  check(valid == text.size(), "{}: not UTF-8 (byte {}); expected text", name, valid + 1);
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    text_ += character.code_point;
    text.remove_prefix(character.bytes);
  }
}

char32_t SyntaxReader::take() {
  if (at_end()) refuse("the end", "more");
  return text_[at_++];
}

bool SyntaxReader::take_if(char32_t character) {
  if (at_end() || text_[at_] != character) return false;
  ++at_;
  return true;
}

bool SyntaxReader::take_if(std::string_view ascii) {
  for (size_t i = 0; i < ascii.size(); ++i)
    if (peek(i) != static_cast<char32_t>(ascii[i])) return false;
  at_ += ascii.size();
  return true;
}

void SyntaxReader::expect(char32_t character, const char* expected) {
  if (!take_if(character)) refuse(at_end() ? "the end" : "another character", expected);
}

char32_t SyntaxReader::hexadecimal(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i) {
    const char32_t c = peek();
    const int digit = c >= '0' && c <= '9'   ? static_cast<int>(c - '0')
                      : c >= 'a' && c <= 'f' ? static_cast<int>(c - 'a') + 10
                      : c >= 'A' && c <= 'F' ? static_cast<int>(c - 'A') + 10
                                             : -1;
    if (digit < 0) refuse("not a hexadecimal digit", fmt::format("{} of them", digits));
    ++at_;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  const bool surrogate = value >= kFirstSurrogate && value <= kLastSurrogate;
  if (value > kLastCharacter || surrogate) refuse("not a character", "one of Unicode");
  return value;
}

int64_t SyntaxReader::number() {
  if (peek() < '0' || peek() > '9') refuse("not a number", "a number of repetitions");
  int64_t value = 0;
  while (peek() >= '0' && peek() <= '9') {
    value = value * 10 + static_cast<int64_t>(take() - '0');
    if (value > kMostCount) refuse("too many repetitions", fmt::format("at most {}", kMostCount));
  }
  return value;
}

// Reads the rest of "{m}", "{m,}" or "{m,n}".
Counts SyntaxReader::counts() {
  const int64_t least = number();
  if (take_if(U'}')) return {least, least};
  expect(U',', "{m}, {m,} or {m,n}");
  if (take_if(U'}')) return {least, std::nullopt};
  const int64_t most = number();
  expect(U'}', "a closing brace");
  if (most < least) refuse("fewer than the minimum", "the larger number last");
  return {least, most};
}

std::optional<Counts> SyntaxReader::quantifier() {
  if (take_if(U'*')) return Counts{0, std::nullopt};
  if (take_if(U'+')) return Counts{1, std::nullopt};
  if (take_if(U'?')) return Counts{0, 1};
  if (take_if(U'{')) return counts();
  return std::nullopt;
}

void SyntaxReader::refuse(const std::string& what, const std::string& expected) const {
  const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
  const auto line = 1 + std::count(text_.begin(), end, U'\n');
  const size_t newline = at_ == 0 ? text_.npos : text_.rfind(U'\n', at_ - 1);
  const size_t column = at_ - (newline == text_.npos ? 0 : newline + 1) + 1;
  fail(ErrorKind::InvalidArgument, "{}: {} (line {}, character {}); expected {}", name_, what, line,
       column, expected);
}

void SyntaxReader::count_parts(size_t number) {
  parts_ += number;
  if (parts_ > kMostParts) refuse("too many parts", fmt::format("at most {}", kMostParts));
}

SyntaxReader::Nesting::Nesting(SyntaxReader& reader) : reader_(reader) {
  if (++reader.depth_ > kMostNesting)
    reader.refuse(fmt::format("nested deeper than {} levels", kMostNesting), "fewer");
}

SchemaGrammar choice_grammar(const std::vector<std::string>& texts, const Grammar::Bytes& usable) {
  check(!texts.empty(), "choice: no texts; expected at least one");
  auto grammar = std::make_shared<Grammar>(usable);
  GrammarRules rules(*grammar, "choice");
  std::vector<Symbols> ways;
  for (const std::string& text : texts) {
    check(!text.empty(), "choice: \"\" is empty; expected a text");
    ways.push_back(rules.text(text));
  }
  const int32_t root = rules.one_of(ways).index;
  grammar->finish();
  return {std::move(grammar), root};
}

}  // namespace fovea::text
