#include "jinja/text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "jinja/value.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text::jinja {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_cased(char32_t c) {
  const auto found = category(c);
  return found == UTF8PROC_CATEGORY_LU || found == UTF8PROC_CATEGORY_LL ||
         found == UTF8PROC_CATEGORY_LT;
}

bool is_printable(char32_t c) {
  const auto found = category(c);
  return c == ' ' || (found != UTF8PROC_CATEGORY_CN && found < UTF8PROC_CATEGORY_ZS);
}

bool is_line_end(char32_t c) {
  return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

std::u32string decoded(std::string_view text) {
  std::u32string result;
  while (!text.empty()) {
    const utf8::Character character = utf8::first(text);
    result.push_back(character.code_point);
    text.remove_prefix(character.bytes);
  }
  return result;
}

enum class Case { upper, lower, title };

// Appends a character in another case. Of the characters whose upper case has several characters,
// only the German sharp s is handled, since the other characters are rare.
void append_in_case(std::string& out, char32_t c, Case which) {
  const auto code = static_cast<utf8proc_int32_t>(c);
  if (which == Case::lower) {
    const auto [first, second] = unicode::lowercase(c);
    utf8::append(out, first);
    if (second != 0) utf8::append(out, second);
  } else if (c == 0xDF) {
    out += which == Case::upper ? "SS" : "Ss";
  } else {
    const auto mapped = which == Case::upper ? utf8proc_toupper(code) : utf8proc_totitle(code);
    utf8::append(out, static_cast<char32_t>(mapped));
  }
}

std::string in_case(std::string_view text, auto&& case_of) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : decoded(text)) append_in_case(result, c, case_of(c));
  return result;
}

}  // namespace

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0u) != 0x80u; }));
}

size_t byte_of(std::string_view text, size_t character) {
  size_t byte = 0;
  for (; byte < text.size(); ++byte) {
    const bool starts = (static_cast<uint8_t>(text[byte]) & 0xC0u) != 0x80u;
    if (starts && character-- == 0) break;
  }
  return byte;
}

bool is_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_word(char32_t c) {
  const auto found = category(c);
  return c == '_' || (found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO) ||
         (found >= UTF8PROC_CATEGORY_ND && found <= UTF8PROC_CATEGORY_NO);
}

std::string upper(std::string_view text) {
  return in_case(text, [](char32_t) { return Case::upper; });
}

std::string lower(std::string_view text) {
  return in_case(text, [](char32_t) { return Case::lower; });
}

std::string capitalize(std::string_view text) {
  return in_case(text, [first = true](char32_t) mutable {
    return std::exchange(first, false) ? Case::title : Case::lower;
  });
}

std::string title(std::string_view text) {
  return in_case(text, [inside = false](char32_t c) mutable {
    return std::exchange(inside, is_cased(c)) ? Case::lower : Case::title;
  });
}

std::string title_words(std::string_view text) {
  static constexpr std::u32string_view kBetween = U"-({[<";
  return in_case(text, [inside = false](char32_t c) mutable {
    const bool letter = !is_space(c) && kBetween.find(c) == kBetween.npos;
    return std::exchange(inside, letter) ? Case::lower : Case::upper;
  });
}

namespace {

// Returns the last character of a text that is not empty.
utf8::Character last_character(std::string_view text) {
  size_t start = text.size() - 1;
  while (start > 0 && (static_cast<uint8_t>(text[start]) & 0xC0u) == 0x80u) --start;
  return utf8::first(text.substr(start));
}

std::string_view strip_where(std::string_view text, Side side, auto&& goes) {
  while (side != Side::right && !text.empty()) {
    const utf8::Character character = utf8::first(text);
    if (!goes(character.code_point)) break;
    text.remove_prefix(character.bytes);
  }
  while (side != Side::left && !text.empty()) {
    const utf8::Character character = last_character(text);
    if (!goes(character.code_point)) break;
    text.remove_suffix(character.bytes);
  }
  return text;
}

}  // namespace

std::string_view strip(std::string_view text, Side side) {
  return strip_where(text, side, is_space);
}

std::string_view strip(std::string_view text, std::string_view set, Side side) {
  const std::u32string stripped = decoded(set);
  return strip_where(text, side, [&](char32_t c) { return stripped.find(c) != stripped.npos; });
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const utf8::Character character = utf8::first(text.substr(at));
    const size_t end = at;
    at += character.bytes;
    if (!is_line_end(character.code_point)) continue;
    if (character.code_point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, end - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

// A part becomes a view, and then a value with its text.
constexpr size_t kPartBytes = sizeof(std::string_view) + sizeof(Value) + Text::kTextBytes;

std::vector<std::string_view> split_words(Runtime& runtime, std::string_view text, int64_t limit) {
  std::vector<std::string_view> words;
  for (text = strip(text, Side::left); !text.empty(); runtime.room(words.size() * kPartBytes)) {
    if (limit >= 0 && static_cast<int64_t>(words.size()) == limit) {
      words.push_back(text);
      break;
    }
    const auto is_letter = [](char32_t c) { return !is_space(c); };
    const std::string_view rest = strip_where(text, Side::left, is_letter);
    words.push_back(text.substr(0, text.size() - rest.size()));
    text = strip(rest, Side::left);
  }
  return words;
}

std::vector<std::string_view> split_at(Runtime& runtime, std::string_view text,
                                       std::string_view separator, int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    runtime.room(parts.size() * kPartBytes);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&#34;"; break;
      default: out.push_back(c);
    }
  }
  return out;
}

std::string quoted(std::string_view text) {
  const bool single = text.find('\'') != text.npos, twice = text.find('"') != text.npos;
  const char quote = single && !twice ? '"' : '\'';
  std::string result(1, quote);
  for (std::string_view rest = text; !rest.empty();) {
    const utf8::Character character = utf8::first(rest);
    const char32_t c = character.code_point;
    const auto code = static_cast<uint32_t>(c);
    if (c == '\n' || c == '\r' || c == '\t') {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
      result += {'\\', static_cast<char>(c)};
    } else if (is_printable(c)) {
      result += rest.substr(0, character.bytes);
    } else {
      result += c < 0x100     ? fmt::format("\\x{:02x}", code)
                : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
    rest.remove_prefix(character.bytes);
  }
  return result + quote;
}

}  // namespace fovea::text::jinja
