#include "jinja/parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "fovea/core/excerpt.h"
#include "jinja/text.h"
#include "unicode/utf8.h"

namespace fovea::text::jinja {

void refuse_source(ErrorKind kind, std::string_view name, Position position, std::string what) {
  // Strings and messages in templates may have several lines; an error message is one short line.
  constexpr size_t kMost = 400;
  std::replace(what.begin(), what.end(), '\n', ' ');
  fail(kind, "{}: line {}, column {}: {}", name, position.line, position.column,
       excerpt(what, kMost));
}

namespace {

// Returns a source as Jinja reads it: each kind of line end becomes "\n", and one line end at the
// end of the source is removed.
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
    refuse_source(ErrorKind::BadFile, name_, position_, what);
  }
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::string_view what) const { return rest().starts_with(what); }

  void advance(size_t bytes) {
    for (const char c : rest().substr(0, bytes)) {
      if (c == '\n') {
        ++position_.line;
        position_.column = 1;
      } else if ((static_cast<uint8_t>(c) & 0xC0u) != 0x80u) {
        ++position_.column;
      }
    }
    at_ += bytes;
  }

  LexedToken& add(TokenType type, std::string_view text) {
    return tokens_.emplace_back(LexedToken{type, std::string(text), Value(), position_});
  }

  void skip_space() { advance(rest().size() - strip(rest(), Side::left).size()); }

  // Returns the sign of a tag, - or + next to a delimiter; 0 if there is none.
  char sign_at(size_t at) const {
    return at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
  }

  // Reads the text up to the next tag, and that tag.
  void text() {
    const size_t start = at_;
    size_t open = source_.find('{', at_);
    while (open != source_.npos &&
           (open + 1 == source_.size() ||
            std::string_view("{%#").find(source_[open + 1]) == std::string_view::npos)) {
      open = source_.find('{', open + 1);
    }
    const Position position = position_;
    if (open == source_.npos) {
      advance(source_.size() - at_);
      return add_data(std::string_view(source_).substr(start), position);
    }
    advance(open - at_);
    const Position tag = position_;
    const char kind = source_[open + 1];
    const char mark = sign_at(open + 2);
    advance(mark == 0 ? 2 : 3);
    add_data(stripped(std::string_view(source_).substr(start, open - start), mark, kind != '{'),
             position);
    if (kind == '#') return comment(tag);
    if (kind == '%' && raw(tag)) return;
    tokens_.push_back(
        {kind == '{' ? TokenType::variable_begin : TokenType::block_begin, "", Value(), tag});
    code(kind == '{');
  }

  void add_data(std::string_view text, Position position) {
    if (!text.empty()) tokens_.push_back({TokenType::data, std::string(text), Value(), position});
  }

  // Returns the text before a tag without the white space that the tag removes: "-" removes all of
  // it; a block tag or a comment without a sign removes its indentation.
  std::string_view stripped(std::string_view text, char mark, bool indented) const {
    if (mark == '-') return strip(text, Side::right);
    if (mark == '+' || !indented) return text;
    const size_t line = text.rfind('\n') + 1;  // 0 in the first line
    const bool starts_line = line > 0 || line_starting_;
    return starts_line && strip(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  // Skips the white space that a tag removes after its end.
  void finish(char mark, bool trims) {
    if (mark == '-') skip_space();
    if (mark == 0 && trims && starts("\n")) advance(1);
    line_starting_ = source_[at_ - 1] == '\n';
  }

  void comment(Position tag) {
    const size_t end = source_.find("#}", at_);
    if (end == source_.npos) {
      position_ = tag;
      refuse("a comment without an end; expected #}");
    }
    const char before = end > at_ ? sign_at(end - 1) : '\0';
    advance(end + 2 - at_);
    finish(before, true);
  }

  // Returns the number of bytes of the end of a tag at position `at`, with its sign; 0 if the tag
  // does not end there.
  size_t end_of_tag(size_t at, std::string_view end, char& mark) const {
    mark = sign_at(at);
    const size_t bytes = mark == 0 ? 0 : 1;
    return source_.compare(at + bytes, end.size(), end) == 0 ? bytes + end.size() : 0;
  }

  size_t after_space(size_t at) const {
    return source_.size() - strip(std::string_view(source_).substr(at), Side::left).size();
  }

  // Returns the position after white space, a word and the end of a tag, which begin at `at`; 0 if
  // they are not there.
  size_t after_tag(size_t at, std::string_view word, char& mark) const {
    at = after_space(at);
    if (source_.compare(at, word.size(), word) != 0) return 0;
    at = after_space(at + word.size());
    const size_t bytes = end_of_tag(at, "%}", mark);
    return bytes == 0 ? 0 : at + bytes;
  }

  // Reads the rest of {% raw %} ... {% endraw %} after the first delimiter; returns false for other
  // tags.
  bool raw(Position tag) {
    char mark = 0;
    const size_t begin = after_tag(at_, "raw", mark);
    if (begin == 0 || mark == '+') return false;
    advance(begin - at_);
    finish(mark, false);
    for (size_t open = at_; (open = source_.find("{%", open)) != source_.npos; open += 2) {
      const char sign = sign_at(open + 2);
      const size_t end = after_tag(open + 2 + (sign != 0), "endraw", mark);
      if (end == 0) continue;
      add_data(stripped(std::string_view(source_).substr(at_, open - at_), sign, true), position_);
      advance(end - at_);
      finish(mark, true);
      return true;
    }
    position_ = tag;
    refuse("raw without an end; expected {% endraw %}");
  }

  // Reads the tokens inside a tag, up to its end.
  void code(bool variable) {
    std::string open;  // the closing brackets that are expected
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

  // Reads a number such as 12 or 0.5; x.1.2 contains two integers.
  void number_token() {
    constexpr std::string_view kDigits = "0123456789";
    size_t end = std::min(source_.find_first_not_of(kDigits, at_), source_.size());
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
    const size_t whole = end;
    if (!after_dot && end + 1 < source_.size() && source_[end] == '.' &&
        kDigits.find(source_[end + 1]) != kDigits.npos) {
      end = std::min(source_.find_first_not_of(kDigits, end + 1), source_.size());
    }
    const std::string text = source_.substr(at_, end - at_);
    int64_t integer = 0;
    if (end > whole) {
      add(TokenType::number, text).value = Value(std::strtod(text.c_str(), nullptr));
    } else if (std::from_chars(text.data(), text.data() + text.size(), integer).ec == std::errc()) {
      add(TokenType::number, text).value = Value(integer);
    } else {
      refuse(fmt::format("{} has more than 64 bits; expected a smaller number", text));
    }
    advance(text.size());
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
    add(TokenType::string, rest().substr(0, end + 1 - at_)).value = Value(unescaped(inside));
    advance(end + 1 - at_);
  }

  // Returns the text between the quotes with Python's escapes resolved; unknown escapes are kept.
  std::string unescaped(std::string_view text) const {
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeant = "\\'\"\a\b\f\n\r\t\v";
    std::string out;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] != '\\') {
        out.push_back(text[at]);
        continue;
      }
      const char kind = text[++at];  // no string ends with a backslash
      if (const size_t simple = kLetters.find(kind); simple != kLetters.npos) {
        out.push_back(kMeant[simple]);
      } else if (kind == 'x' || kind == 'u' || kind == 'U') {
        const size_t length = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
        append_code(out, text.substr(at + 1, length), length);
        at += length;
      } else if (kind == 'N' || (kind >= '0' && kind <= '7')) {
        refuse(fmt::format("the escape \\{} is not supported; expected \\u and four digits", kind));
      } else if (kind != '\n') {  // a backslash before a line end joins the lines
        out += {'\\', kind};
      }
    }
    return out;
  }

  void append_code(std::string& out, std::string_view digits, size_t length) const {
    uint32_t code = 0;
    const char* const last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, code, 16);
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    if (error != std::errc() || end != last || digits.size() < length ||
        code >= utf8::code_points || surrogate) {
      refuse("an invalid escape in a string; expected the hexadecimal code of a character");
    }
    utf8::append(out, code);
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
  Position position_;
  bool line_starting_ = true;  // whether the text after the last tag begins a line
  std::vector<LexedToken> tokens_;
};

}  // namespace

std::vector<LexedToken> lex(std::string_view source, const std::string& name) {
  return Lexer(source, name).run();
}

}  // namespace fovea::text::jinja
