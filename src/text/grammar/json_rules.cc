#include "grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fovea::text {
namespace {

// Limits: digits of an integer, which 64 bits hold, digits of other numbers before and after the
// point, digits of an exponent, and spaces of indentation.
constexpr int64_t kIntegerDigits = 18, kDigits = 20, kFractionDigits = 15, kExponentDigits = 2,
                  kIndent = 32;
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPythonWords = {
    {{"true", "True"}, {"false", "False"}, {"null", "None"}}};

}  // namespace

JsonRules::JsonRules(Grammar& grammar, Words words)
    : GrammarRules(grammar, "schema"),
      words_(words),
      value_(grammar.add_rule()),
      object_(grammar.add_rule()),
      array_(grammar.add_rule()),
      string_(grammar.add_rule()),
      number_(grammar.add_rule()),
      integer_(grammar.add_rule()),
      space_(grammar.add_rule()),
      character_(grammar.add_rule()) {
  const Sequence blank = text(" ");
  add(space(), {{}, blank, text("\n") + Sequence{repeated(blank, blank, 0, kIndent)}});
  make_characters();
  make_numbers();
  make_values();
}

Grammar::Sequence JsonRules::literal(std::string_view json) {
  if (words_ == Words::json) return text(json);
  Sequence all;
  bool in_string = false;
  while (!json.empty()) {
    const auto* const word = std::ranges::find_if(
        kPythonWords, [&](const auto& each) { return !in_string && json.starts_with(each.first); });
    const bool found = word != kPythonWords.end();
    const std::string_view part =
        found ? word->first : json.substr(0, in_string && json[0] == '\\' ? 2 : 1);
    if (part == "\"") in_string = !in_string;
    all =
        std::move(all) + (found ? Sequence{one_of({text(part), text(word->second)})} : text(part));
    json.remove_prefix(part.size());
  }
  return all;
}

Grammar::Sequence JsonRules::list(char open, const Sequence& part, int64_t least,
                                  std::optional<int64_t> most, char close) {
  const Sequence next = text(",") + Sequence{space()} + part;
  return text({&open, 1}) + Sequence{space(), repeated(part, next, least, most), space()} +
         text({&close, 1});
}

Grammar::Symbol JsonRules::digits(int64_t least, int64_t most) {
  const Sequence digit = {grammar_.range('0', '9')};
  return repeated(digit, digit, least, most);
}

// Characters in UTF-8 (Unicode 15, table 3-7) and escapes; two \u of a surrogate pair are one
// character.
void JsonRules::make_characters() {
  Grammar::Bytes plain;
  for (size_t byte = 0x20; byte < 0x80; ++byte) plain[byte] = byte != '"' && byte != '\\';
  Grammar::Bytes escaped;
  for (const char c : std::string_view("\"\\/bfnrt")) escaped.set(static_cast<size_t>(c));
  const auto r = [this](int first, int last) { return grammar_.range(first, last); };
  const auto hex = [&](const char* digits) {
    Grammar::Bytes bytes;
    for (; *digits != '\0'; ++digits) bytes.set(static_cast<size_t>(*digits));
    return grammar_.one_of(bytes);
  };
  const Symbol any = hex("0123456789abcdefABCDEF"), more = r(0x80, 0xBF);
  add(character(), {{grammar_.one_of(plain)},
                    text("\\") + Sequence{grammar_.one_of(escaped)},
                    text("\\u") + Sequence{hex("0123456789abcefABCEF"), any, any, any},
                    text("\\u") + Sequence{hex("dD"), r('0', '7'), any, any},
                    text("\\u") + Sequence{hex("dD"), hex("89abAB"), any, any} + text("\\u") +
                        Sequence{hex("dD"), hex("cdefCDEF"), any, any},
                    {r(0xC2, 0xDF), more},
                    {r(0xE0, 0xE0), r(0xA0, 0xBF), more},
                    {r(0xE1, 0xEC), more, more},
                    {r(0xED, 0xED), r(0x80, 0x9F), more},
                    {r(0xEE, 0xEF), more, more},
                    {r(0xF0, 0xF0), r(0x90, 0xBF), more, more},
                    {r(0xF1, 0xF3), more, more, more},
                    {r(0xF4, 0xF4), r(0x80, 0x8F), more, more}});
  const Sequence one = {character()};
  add(string(), {text("\"") + Sequence{repeated(one, one, 0, std::nullopt)} + text("\"")});
}

void JsonRules::make_numbers() {
  const Symbol sign = one_of({{}, text("-")});
  const auto whole = [&](int64_t most) {
    return one_of({text("0"), Sequence{grammar_.range('1', '9'), digits(0, most - 1)}});
  };
  add(integer(), {{sign, whole(kIntegerDigits)}});
  const Symbol fraction = one_of({{}, text(".") + Sequence{digits(1, kFractionDigits)}});
  const Symbol power_sign = one_of({{}, text("-"), text("+")});
  const Symbol e = one_of({text("e"), text("E")});
  const Symbol exponent = one_of({{}, Sequence{e, power_sign, digits(1, kExponentDigits)}});
  add(number(), {{sign, whole(kDigits), fraction, exponent}});
}

void JsonRules::make_values() {
  const Sequence pair = Sequence{string()} + text(":") + Sequence{space(), value()};
  add(object(), {list('{', pair, 0, std::nullopt, '}')});
  add(array(), {list('[', {value()}, 0, std::nullopt, ']')});
  add(value(), {{object()},
                {array()},
                {string()},
                {number()},
                literal("true"),
                literal("false"),
                literal("null")});
}

}  // namespace fovea::text
