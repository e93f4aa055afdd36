#include "jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "fovea/excerpt.h"
#include "jinja/characters.h"
#include "jinja/literal.h"
#include "unicode/utf8.h"

namespace fovea::jinja {

void refuse_source(ErrorKind kind, std::string_view name, Position place, const std::string& what) {
  // Strings and messages of templates go over several lines; an error is one short line.
  constexpr size_t kMost = 400;
  std::string line = what;
  std::replace(line.begin(), line.end(), '\n', ' ');
  fail(kind, "{}: line {}, column {}: {}", name, place.line, place.column, excerpt(line, kMost));
}

namespace {

// As Jinja reads a source: each kind of line end is "\n", and one at the very end goes.
std::string normalized(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text.push_back(source[i]);
    } else {
      text.push_back('\n');
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name)
      : source_(normalized(source)), name_(name) {
    const size_t valid = utf8::valid_prefix(source_);
    if (valid < source_.size()) {
      advance(valid);
      refuse("invalid UTF-8; expected UTF-8 text");
    }
  }

  std::vector<LexedToken> run() {
    while (at_ < source_.size()) text();
    add(TokenType::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    refuse_source(ErrorKind::BadFile, name_, place_, what);
  }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::string_view what) const { return rest().starts_with(what); }

  void advance(size_t bytes) {
    for (const char c : rest().substr(0, bytes)) {
      if (c == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<uint8_t>(c) & 0xC0u) != 0x80u) {
        ++place_.column;
      }
    }
    at_ += bytes;
  }

  LexedToken& add(TokenType type, std::string_view text) {
    return tokens_.emplace_back(LexedToken{type, std::string(text), Value(), place_});
  }

  void skip_space() { advance(rest().size() - strip(rest(), Side::left).size()); }

  // The sign after an opening tag.
  char sign() {
    if (!starts("-") && !starts("+")) return 0;
    const char c = source_[at_];
    advance(1);
    return c;
  }

  // Text up to the next tag, and that tag.
  void text() {
    const size_t start = at_;
    size_t open = source_.find('{', at_);
    while (open != source_.npos &&
           (open + 1 == source_.size() ||
            std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos)) {
      open = source_.find('{', open + 1);
    }
    const Position place = place_;
    if (open == source_.npos) {
      advance(source_.size() - at_);
      return add_data(std::string_view(source_).substr(start), place);
    }
    advance(open - at_);
    const Position tag = place_;
    const char kind = source_[open + 1];
    advance(2);
    const char mark = sign();
    add_data(stripped(std::string_view(source_).substr(start, open - start), mark, kind != '{'),
             place);
    if (kind == '#') return comment(tag);
    if (kind == '%' && raw()) return;
    tokens_.push_back(
        {kind == '{' ? TokenType::variable_begin : TokenType::block_begin, "", Value(), tag});
    code(kind == '{');
  }

  void add_data(std::string_view text, Position place) {
    if (!text.empty()) tokens_.push_back({TokenType::data, std::string(text), Value(), place});
  }

  // What is left of the text before a tag: "-" takes all white space, a block or a comment takes
  // what indents it.
  std::string_view stripped(std::string_view text, char mark, bool indented) const {
    if (mark == '-') return strip(text, Side::right);
    if (mark == '+' || !indented) return text;
    const size_t line = text.rfind('\n') + 1;  // 0 where there is none
    const bool starts_line = line > 0 || line_starting_;
    return starts_line && strip(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  // Behind the end of a tag.
  void finish(char mark, bool trims) {
    if (mark == '-') skip_space();
    if (mark == 0 && trims && starts("\n")) advance(1);
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void comment(Position tag) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) {
      place_ = tag;
      refuse("a comment without an end; expected #}");
    }
    const char before = end > at_ ? source_[end - 1] : '\0';
    advance(end + 2 - at_);
    finish(before == '-' || before == '+' ? before : '\0', true);
  }

  // How many bytes "%}" takes at a place, with its sign; 0 if it is not there.
  size_t end_of_tag(size_t at, std::string_view end, char& mark) const {
    mark = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
    const size_t bytes = mark == 0 ? 0 : 1;
    return source_.compare(at + bytes, end.size(), end) == 0 ? bytes + end.size() : 0;
  }

  size_t after_space(size_t at) const {
    return source_.size() - strip(std::string_view(source_).substr(at), Side::left).size();
  }

  // {% raw %} ... {% endraw %}; what opens it is behind.
  bool raw() {
    const size_t word = after_space(at_);
    if (source_.compare(word, 3, "raw") != 0) return false;
    char mark = 0;
    const size_t close = after_space(word + 3), bytes = end_of_tag(close, "%}", mark);
    if (bytes == 0 || mark == '+') return false;
    const Position tag = place_;
    advance(close + bytes - at_);
    finish(mark, false);
    raw_text(tag);
    return true;
  }

  void raw_text(Position tag) {
    if (at_ == source_.size()) return;  // Jinja does not miss the end of nothing
    for (size_t open = source_.find("{%", at_); open != source_.npos;
         open = source_.find("{%", open + 1)) {
      size_t word = open + 2;
      const char sign = word < source_.size() && (source_[word] == '-' || source_[word] == '+')
                            ? source_[word]
                            : '\0';
      word = after_space(word + (sign != 0));
      if (source_.compare(word, 6, "endraw") != 0) continue;
      char mark = 0;
      const size_t close = after_space(word + 6), bytes = end_of_tag(close, "%}", mark);
      if (bytes == 0) continue;
      add_data(stripped(std::string_view(source_).substr(at_, open - at_), sign, true), place_);
      advance(close + bytes - at_);
      return finish(mark, true);
    }
    place_ = tag;
    refuse("raw without an end; expected {% endraw %}");
  }

  // The tokens inside a tag, up to its end.
  void code(bool variable) {
    std::string open;  // brackets whose closing one is expected
    const std::string_view end = variable ? "}}" : "%}";
    while (true) {
      char mark = 0;
      const size_t bytes = open.empty() ? end_of_tag(at_, end, mark) : 0;
      if (bytes > 0 && !(variable && mark == '+')) {
        add(variable ? TokenType::variable_end : TokenType::block_end, end);
        advance(bytes);
        return finish(mark, !variable);
      }
      if (at_ == source_.size()) {
        add(TokenType::end, "");
        return;
      }
      token(open);
    }
  }

  void token(std::string& open) {
    const char c = source_[at_];
    const utf8::Character character = utf8::first(rest());
    if (is_space(character.code_point)) return skip_space();
    if (c >= '0' && c <= '9') return number_token();
    if (is_word(character.code_point)) return name_token();
    if (c == '"' || c == '\'') return string_token(c);
    symbol_token(open);
  }

  void number_token() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // x.1.2 has two integers
    const size_t bytes = number_length(rest(), !after_dot);
    const std::string_view digits = rest().substr(0, bytes);
    const Value value = number_value(digits);
    if (value.is(Kind::missing)) refuse(fmt::format("{} has more than 64 bits", digits));
    add(TokenType::number, digits).value = value;
    advance(bytes);
  }

  void name_token() {
    size_t bytes = 0;
    while (at_ + bytes < source_.size()) {
      const utf8::Character character = utf8::first(rest().substr(bytes));
      if (!is_word(character.code_point)) break;
      bytes += character.bytes;
    }
    add(TokenType::name, rest().substr(0, bytes));
    advance(bytes);
  }

  void string_token(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) refuse("a string without an end; expected the closing quote");
    const std::string_view inside = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    std::string problem;
    const std::optional<std::string> text = unescaped(inside, problem);
    if (!text) refuse(problem);
    add(TokenType::string, rest().substr(0, end + 1 - at_)).value = Value(*text);
    advance(end + 1 - at_);
  }

  void symbol_token(std::string& open) {
    constexpr std::array<std::string_view, 26> symbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
        "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (const std::string_view symbol : symbols) {
      if (!starts(symbol)) continue;
      balance(symbol[0], open);
      add(TokenType::symbol, symbol);
      return advance(symbol.size());
    }
    refuse(fmt::format("unexpected character '{}'", rest().substr(0, utf8::first(rest()).bytes)));
  }

  void balance(char c, std::string& open) const {
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (const size_t kind = opening.find(c); kind != opening.npos) open.push_back(closing[kind]);
    if (closing.find(c) == closing.npos) return;
    if (open.empty()) refuse(fmt::format("unexpected '{}'", c));
    if (open.back() != c) refuse(fmt::format("unexpected '{}'; expected '{}'", c, open.back()));
    open.pop_back();
  }

  std::string source_;
  std::string name_;
  size_t at_ = 0;
  Position place_;
  bool line_starting_ = true;  // the last tag ended with a line end
  std::vector<LexedToken> tokens_;
};

}  // namespace

std::vector<LexedToken> lex(std::string_view source, const std::string& name) {
  return Lexer(source, name).run();
}

}  // namespace fovea::jinja
