#include "jinja/characters.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "jinja/case.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

using CharacterRange = std::pair<char32_t, char32_t>;

bool within(const auto& ranges, char32_t c) {
  const auto found =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t x, const CharacterRange& range) { return x < range.first; });
  return found != ranges.begin() && c <= (found - 1)->second;
}

// Unicode's Other_Lowercase and Other_Uppercase: cased without being letters of that case.
constexpr std::array<CharacterRange, 21> other_lower = {{
    {0xAA, 0xAA},       {0xBA, 0xBA},     {0x2B0, 0x2B8},   {0x2C0, 0x2C1},   {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},   {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78}, {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F}, {0x2090, 0x209C}, {0x2170, 0x217F}, {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D}, {0xA770, 0xA770}, {0xA7F8, 0xA7F9}, {0xAB5C, 0xAB5F},
    {0x10780, 0x107BA},
}};
constexpr std::array<CharacterRange, 5> other_upper = {{{0x2160, 0x216F},
                                                        {0x24B6, 0x24CF},
                                                        {0x1F130, 0x1F149},
                                                        {0x1F150, 0x1F169},
                                                        {0x1F170, 0x1F189}}};
utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(char32_t c) {
  const auto found = category(c);
  return found >= UTF8PROC_CATEGORY_LU && found <= UTF8PROC_CATEGORY_LO;
}

const SpecialCase* special_case(char32_t c) {
  const auto found =
      std::lower_bound(special_cases.begin(), special_cases.end(), c,
                       [](const SpecialCase& entry, char32_t x) { return entry.character < x; });
  return found != special_cases.end() && found->character == c ? &*found : nullptr;
}

void append_all(std::string& out, std::u32string_view text) {
  for (const char32_t c : text) utf8::append(out, c);
}

void append_upper(std::string& out, char32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  } else if (const SpecialCase* special = special_case(c)) {
    append_all(out, special->upper);
  } else {
    utf8::append(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (c < 0x80) return append_upper(out, c);
  if (const SpecialCase* special = special_case(c)) return append_all(out, special->title);
  utf8::append(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || is_titlecase(c); }

// What final sigma looks through: marks, modifiers and the like (the Case_Ignorable property).
bool is_case_ignorable(char32_t c) {
  const auto found = category(c);
  return c == '\'' || c == '.' || c == ':' || c == '^' || c == '`' || c == 0xB7 || c == 0x2019 ||
         found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_ME ||
         found == UTF8PROC_CATEGORY_CF || found == UTF8PROC_CATEGORY_LM ||
         found == UTF8PROC_CATEGORY_SK;
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

// A capital sigma at the end of a word becomes the final one.
bool is_final_sigma(std::u32string_view text, size_t place) {
  size_t before = place;
  while (before > 0 && is_case_ignorable(text[before - 1])) --before;
  if (before == 0 || !is_cased(text[before - 1])) return false;
  size_t after = place + 1;
  while (after < text.size() && is_case_ignorable(text[after])) ++after;
  return after == text.size() || !is_cased(text[after]);
}

void append_lower(std::string& out, std::u32string_view text, size_t place) {
  const char32_t c = text[place];
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {
    append_all(out, U"i\u0307");  // the one character whose lower case has two
  } else if (c == 0x3A3) {
    utf8::append(out, is_final_sigma(text, place) ? char32_t{0x3C2} : char32_t{0x3C3});
  } else {
    utf8::append(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
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

bool is_line_end(char32_t c) {
  return (c >= 0xA && c <= 0xD) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_titlecase(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }

bool is_alphanumeric(char32_t c) {
  const auto found = category(c);
  return is_letter(c) || (found >= UTF8PROC_CATEGORY_ND && found <= UTF8PROC_CATEGORY_NO);
}

bool is_word(char32_t c) { return c == '_' || is_alphanumeric(c); }

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  const auto found = category(c);
  return found != UTF8PROC_CATEGORY_CN && found < UTF8PROC_CATEGORY_ZS;
}

bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || within(other_upper, c); }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || within(other_lower, c); }

std::string upper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char32_t c : decoded(text)) append_upper(result, c);
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  const std::u32string all = decoded(text);
  for (size_t i = 0; i < all.size(); ++i) append_lower(result, all, i);
  return result;
}

std::string capitalize(std::string_view text) {
  std::string result;
  const std::u32string all = decoded(text);
  if (!all.empty()) append_title(result, all[0]);
  for (size_t i = 1; i < all.size(); ++i) append_lower(result, all, i);
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  const std::u32string all = decoded(text);
  bool inside = false;
  for (size_t i = 0; i < all.size(); ++i) {
    if (inside) {
      append_lower(result, all, i);
    } else {
      append_title(result, all[i]);
    }
    inside = is_cased(all[i]);
  }
  return result;
}

namespace {

// The last character of a text that is not empty.
utf8::Character last(std::string_view text) {
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
    const utf8::Character character = last(text);
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
  const std::u32string characters = decoded(set);
  return strip_where(text, side, [&](char32_t c) { return characters.find(c) != characters.npos; });
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t start = 0, at = 0;
  while (at < text.size()) {
    const utf8::Character character = utf8::first(text.substr(at));
    const size_t end = at;
    at += character.bytes;
    if (!is_line_end(character.code_point)) continue;
    if (character.code_point == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(start, (keep_ends ? at : end) - start));
    start = at;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::vector<std::string_view> split_words(std::string_view text, int64_t limit, bool from_right) {
  std::vector<std::string_view> words;
  const Side near = from_right ? Side::right : Side::left;
  text = strip(text, near);
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(words.size()) == limit) {
      words.push_back(text);
      break;
    }
    // What a pass over the characters that stay would strip is the word.
    const std::string_view rest = strip_where(text, near, [](char32_t c) { return !is_space(c); });
    words.push_back(from_right ? text.substr(rest.size())
                               : text.substr(0, text.size() - rest.size()));
    text = strip(rest, near);
  }
  if (from_right) std::reverse(words.begin(), words.end());
  return words;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       int64_t limit, bool from_right) {
  std::vector<std::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    const std::string_view before = text.substr(0, at), after = text.substr(at + separator.size());
    parts.push_back(from_right ? after : before);
    text = from_right ? before : after;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

namespace {

bool all_cased(std::string_view text, auto&& wanted) {
  bool any = false;
  for (const char32_t c : decoded(text)) {
    if (!is_cased(c)) continue;
    if (!wanted(c)) return false;
    any = true;
  }
  return any;
}

}  // namespace

bool is_lowercase(std::string_view text) { return all_cased(text, is_lower); }
bool is_uppercase(std::string_view text) { return all_cased(text, is_upper); }

std::string quoted(std::string_view text) {
  const bool single = text.find('\'') != text.npos, twice = text.find('"') != text.npos;
  const char quote = single && !twice ? '"' : '\'';
  std::string result(1, quote);
  for (std::string_view rest = text; !rest.empty();) {
    const utf8::Character character = utf8::first(rest);
    const char32_t c = character.code_point;
    if (c == '\n' || c == '\r' || c == '\t') {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c == '\\' || c == static_cast<char32_t>(quote)) {
      result += {'\\', static_cast<char>(c)};
    } else if (is_printable(c)) {
      result += rest.substr(0, character.bytes);
    } else {
      const auto code = static_cast<uint32_t>(c);
      result += c < 0x100     ? fmt::format("\\x{:02x}", code)
                : c < 0x10000 ? fmt::format("\\u{:04x}", code)
                              : fmt::format("\\U{:08x}", code);
    }
    rest.remove_prefix(character.bytes);
  }
  return result + quote;
}

}  // namespace fovea::jinja
