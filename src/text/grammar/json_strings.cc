#include "grammar/json_strings.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "grammar/grammar_rules.h"
#include "grammar/length_limits.h"
#include "grammar/syntax.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using Ranges = SyntaxNode::Ranges;

constexpr char32_t kLastControl = 0x1F, kLastAscii = 0x7F;
// Characters that JSON strings contain only after a backslash, and what follows it.
const std::map<char32_t, char> kEscapes = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                           {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

Syntax characters(Ranges ranges) {
  auto made = std::make_unique<SyntaxNode>(SyntaxNode{SyntaxNode::characters});
  made->ranges = std::move(ranges);
  return made;
}

Syntax text_of(const std::string& ascii) {
  auto made = std::make_unique<SyntaxNode>(SyntaxNode{SyntaxNode::sequence});
  for (const char c : ascii) {
    const auto character = static_cast<char32_t>(c);
    made->parts.push_back(characters({{character, character}}));
  }
  return made;
}

// Returns the spellings of one of these characters in a JSON string.
Syntax in_string(const Ranges& ranges) {
  auto ways = std::make_unique<SyntaxNode>(SyntaxNode{SyntaxNode::choice});
  Ranges plain, special = {{0, kLastControl}, {'"', '"'}, {'\\', '\\'}};
  for (const auto& [first, last] : ranges) {
    char32_t next = first;
    for (const auto& [low, high] : special) {
      if (high < next || low > last) continue;
      if (next < low) plain.emplace_back(next, low - 1);
      for (char32_t c = std::max(low, next); c <= std::min(high, last); ++c) {
        const auto escape = kEscapes.find(c);
        ways->parts.push_back(text_of(escape != kEscapes.end()
                                          ? std::string("\\") + escape->second
                                          : fmt::format("\\u{:04x}", static_cast<uint32_t>(c))));
      }
      next = high + 1;
    }
    if (next <= last) plain.emplace_back(next, last);
  }
  if (!plain.empty()) ways->parts.push_back(characters(std::move(plain)));
  return ways;
}

void spell_in_string(Syntax& node) {
  for (Syntax& part : node->parts) spell_in_string(part);
  if (node->kind == SyntaxNode::characters) node = in_string(node->ranges);
}

Syntax any_text() { return repetition(characters(other_characters({})), {0, std::nullopt}); }

// Returns the strings in quotes whose text the rules describe.
Grammar::Symbol quoted(std::vector<Syntax> rules, const char* name, Grammar& grammar) {
  for (Syntax& rule : rules) spell_in_string(rule);
  const Grammar::Sequence quote = grammar.text("\"");
  return GrammarRules(grammar, name)
      .one_of({quote + Grammar::Sequence{lower(std::move(rules), name, grammar)} + quote});
}

// The texts that differ from all of a list, as a tree of prefixes: rule i of a prefix is the rest
// of a text after it. After a character that no listed text has there, any text follows.
class OtherTexts {
 public:
  std::vector<Syntax> rules(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) add(text);
    std::vector<Syntax> rules;
    for (const Prefix& prefix : prefixes_) rules.push_back(rest_after(prefix));
    rules.push_back(any_text());
    return rules;
  }

 private:
  struct Prefix {
    std::map<char32_t, size_t> next = {};
    bool listed = false;
  };

  void add(std::string_view text) {
    size_t at = 0;
    while (!text.empty()) {
      const utf8::Character character = utf8::first(text);
      text.remove_prefix(character.bytes);
      const auto [next, added] =
          prefixes_[at].next.try_emplace(character.code_point, prefixes_.size());
      at = next->second;
      if (added) prefixes_.emplace_back();
    }
    prefixes_[at].listed = true;
  }

  Syntax rest_after(const Prefix& prefix) const {
    Syntax ways = syntax_node(SyntaxNode::choice);
    Ranges special = {{0, kLastControl}}, wide;  // escapes of control characters are left out
    for (const auto& [character, number] : prefix.next) {
      ways->parts.push_back(then(characters({{character, character}}), number));
      (character <= kLastAscii ? special : wide).emplace_back(character, character);
    }
    // Characters of one byte and of more are apart, since most prefixes share the latter.
    special.emplace_back(kLastAscii + 1, utf8::code_points - 1);
    wide.emplace_back(0, kLastAscii);
    for (Ranges* without : {&special, &wide})
      ways->parts.push_back(
          then(one_character_of(other_characters(normal_ranges(std::move(*without)))),
               prefixes_.size()));
    if (!prefix.listed) ways->parts.push_back(syntax_node(SyntaxNode::sequence));
    return ways;
  }

  static Syntax then(Syntax character, size_t rule) {
    Syntax both = syntax_node(SyntaxNode::sequence);
    both->parts.push_back(std::move(character));
    both->parts.push_back(syntax_node(SyntaxNode::rule));
    both->parts.back()->index = rule;
    return both;
  }

  std::vector<Prefix> prefixes_ = std::vector<Prefix>(1);
};

const char kYear[] = "[1-9][0-9]{3}",
           kLeapYear[] = "([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)";
const char kTime[] =
    "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
const char kLabel[] = "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
const char kOctet[] = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";

// The formats as regular expressions (RFC 3339, 5321, 1123, 791, 3986 and 9562).
std::map<std::string, std::string> formats() {
  const std::string date = fmt::format(
      "({0}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]"
      "|"
      "1[0-9]|2[0-8]))|{1}-02-29)",
      kYear, kLeapYear);
  const std::string host = fmt::format("{0}(\\.{0})*", kLabel);
  const std::string word = "[A-Za-z0-9_+-]{1,32}";
  return {{"date", date},
          {"time", kTime},
          {"date-time", date + "T" + kTime},
          {"email", fmt::format("{0}(\\.{0})*@({1}\\.)+[A-Za-z]{{2,12}}", word, kLabel)},
          {"hostname", host},
          {"ipv4", fmt::format("{0}(\\.{0}){{3}}", kOctet)},
          {"uri", "[A-Za-z][A-Za-z0-9+.-]*://" + host +
                      "(:[0-9]{1,5})?(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*"
                      "(\\?([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
                      "(#([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"},
          {"uuid", "[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"}};
}

}  // namespace

Grammar::Symbol strings_matching(const std::string& pattern, int64_t least,
                                 std::optional<int64_t> most, Grammar& grammar) {
  Syntax whole = syntax_node(SyntaxNode::choice);
  for (RegexWay& way : parse_regex(pattern, "pattern")) {
    Syntax text = syntax_node(SyntaxNode::sequence);
    if (!way.from_start) text->parts.push_back(any_text());
    text->parts.push_back(std::move(way.text));
    if (!way.to_end) text->parts.push_back(any_text());
    whole->parts.push_back(std::move(text));
  }
  std::vector<Syntax> rules;
  if (least > 0 || most)
    rules = within_lengths(*whole, {least, most});
  else
    rules.push_back(std::move(whole));
  return quoted(std::move(rules), "pattern", grammar);
}

Grammar::Symbol other_strings(const std::vector<std::string>& texts, Grammar& grammar) {
  return quoted(OtherTexts().rules(texts), "schema", grammar);
}

const char* pattern_of_format(const std::string& format) {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> anchored;
    for (const auto& [name, pattern] : formats()) anchored[name] = "^(" + pattern + ")$";
    return anchored;
  }();
  const auto found = all.find(format);
  return found == all.end() ? nullptr : found->second.c_str();
}

}  // namespace fovea::text
