#include "jinja/literal.h"

#include <array>
#include <charconv>
#include <cmath>

#include "jinja/characters.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'z' ? lower - 'a' + 10 : 99;
}

// Digits of a base with single underscores between them: how many bytes, from `at` on.
size_t digits_length(std::string_view text, size_t at, int base, bool leading_underscore = false) {
  size_t end = at;
  while (end < text.size()) {
    size_t digit = end;
    if (text[digit] == '_' && (end > at || leading_underscore)) ++digit;
    if (digit >= text.size() || digit_value(text[digit]) >= base) break;
    end = digit + 1;
  }
  return end - at;
}

size_t integer_length(std::string_view text) {
  if (text[0] != '0') return digits_length(text, 0, 10);
  if (text.size() > 1) {
    const char kind = static_cast<char>(text[1] | 0x20);
    const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    const size_t digits = base == 0 ? 0 : digits_length(text, 2, base, true);
    if (digits > 0) return 2 + digits;
  }
  return digits_length(text, 0, 1);  // zeros only
}

std::string without_underscores(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != '_') result.push_back(c);
  }
  return result;
}

// Digits to 64 bits; missing if they do not fit.
std::optional<int64_t> parsed(std::string_view digits, int base, bool negative) {
  const std::string text = (negative ? "-" : "") + std::string(digits);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

size_t number_length(std::string_view text, bool allow_real) {
  const size_t integer = integer_length(text);
  if (!allow_real) return integer;
  const size_t whole = digits_length(text, 0, 10);
  size_t end = whole;
  if (end + 1 < text.size() && text[end] == '.') {
    const size_t fraction = digits_length(text, end + 1, 10);
    if (fraction > 0) end += 1 + fraction;
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    const size_t sign = end + 1 < text.size() && (text[end + 1] == '+' || text[end + 1] == '-');
    const size_t exponent = digits_length(text, end + 1 + sign, 10);
    if (exponent > 0) end += 1 + sign + exponent;
  }
  return end > whole ? end : integer;
}

Value number_value(std::string_view digits) {
  const std::string text = without_underscores(digits);
  const char kind = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  if (base == 10 && text.find_first_of(".eE") != text.npos) return Value(*float_of(text));
  const auto value = parsed(std::string_view(text).substr(base == 10 ? 0 : 2), base, false);
  return value ? Value(*value) : Value();
}

std::optional<int64_t> int_of(Runtime& runtime, std::string_view text, int64_t base) {
  if (base != 0 && (base < 2 || base > 36)) {
    runtime.fail("int() has the base {}; expected 0 or 2 to 36", base);
  }
  text = strip(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  const char kind = text.size() > 2 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int prefix = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
  const bool prefixed = prefix != 0 && (base == 0 || base == prefix);
  if (prefixed) text.remove_prefix(2);
  const int used = prefixed ? prefix : base == 0 ? 10 : static_cast<int>(base);
  if (digits_length(text, 0, used, prefixed) != text.size()) return std::nullopt;
  // Without a base "010" is no number in Python.
  if (base == 0 && !prefixed && text[0] == '0' && text.find_first_not_of("0_") != text.npos) {
    return std::nullopt;
  }
  const auto value = parsed(without_underscores(text), used, negative);
  if (!value) runtime.fail("an integer of {} digits; expected at most 64 bits", text.size());
  return value;
}

std::optional<double> float_of(std::string_view text) {
  text = strip(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string word;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 10 &&
                         digit_value(text[i + 1]) < 10;
    if (text[i] == '_' && between) continue;
    word.push_back(text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] | 0x20) : text[i]);
  }
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = HUGE_VAL;
  } else if (word == "nan") {
    value = std::nan("");
  } else {
    // from_chars also takes "inf" and "nan(...)", and a sign.
    if (word.empty() || (word[0] != '.' && digit_value(word[0]) >= 10)) return std::nullopt;
    const char* end = word.data() + word.size();
    const auto result = std::from_chars(word.data(), end, value);
    if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
    if (result.ec == std::errc::result_out_of_range) value = std::strtod(word.c_str(), nullptr);
  }
  return negative ? -value : value;
}

namespace {

constexpr std::string_view simple_escapes = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";  // letter, character

// \xHH, \uHHHH, \UHHHHHHHH and \ooo; `at` is the character after the backslash.
bool append_code(std::string& out, std::string_view text, size_t& at, std::string& problem) {
  const char kind = text[at];
  const bool octal = kind >= '0' && kind <= '7';
  const size_t length = octal ? 3 : kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
  if (!octal) ++at;
  size_t count = 0;
  uint32_t code = 0;
  while (count < length && at < text.size() && digit_value(text[at]) < (octal ? 8 : 16)) {
    code = code * (octal ? 8 : 16) + static_cast<uint32_t>(digit_value(text[at++]));
    ++count;
  }
  if ((!octal && count < length) || code >= utf8::code_points ||
      (code >= 0xD800 && code < 0xE000)) {
    problem = fmt::format("a bad escape \\{} in a string; expected the code of a character", kind);
    return false;
  }
  utf8::append(out, code);
  return true;
}

}  // namespace

std::optional<std::string> unescaped(std::string_view text, std::string& problem) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\\') {
      out.push_back(text[at++]);
      continue;
    }
    const char kind = text[++at];  // the lexer lets no string end with a backslash
    size_t simple = 0;
    while (simple < simple_escapes.size() && simple_escapes[simple] != kind) simple += 2;
    if (simple < simple_escapes.size()) {
      out.push_back(simple_escapes[simple + 1]);
      ++at;
    } else if (kind == '\n') {
      ++at;
    } else if (kind == 'x' || kind == 'u' || kind == 'U' || (kind >= '0' && kind <= '7')) {
      if (!append_code(out, text, at, problem)) return std::nullopt;
    } else if (kind == 'N') {
      problem = "an escape \\N in a string; expected \\u with the code of the character";
      return std::nullopt;
    } else {
      out.push_back('\\');
    }
  }
  return out;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 40> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(value),
                                 std::chars_format::scientific)
                       .ptr;
  // d.ddde+xx
  const std::string_view text(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t e = text.find('e');
  int exponent = 0;
  std::from_chars(text.data() + e + (text[e + 1] == '+' ? 2 : 1), end, exponent);
  std::string digits(text.substr(0, e));
  if (digits.size() > 1) digits.erase(1, 1);
  const std::string sign = std::signbit(value) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {  // where repr() changes over
    const std::string fraction = count > 1 ? "." + digits.substr(1) : "";
    return fmt::format("{}{}{}e{}{:02}", sign, digits[0], fraction, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  if (exponent + 1 >= count) {
    return sign + digits +
           std::string(static_cast<size_t>(exponent) + 1 - static_cast<size_t>(count), '0') + ".0";
  }
  digits.insert(static_cast<size_t>(exponent) + 1, ".");
  return sign + digits;
}

}  // namespace fovea::jinja
