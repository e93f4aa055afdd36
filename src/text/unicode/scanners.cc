#include "unicode/scanners.h"

#include <algorithm>
#include <iterator>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

using namespace unicode;

// A character at a position in a text; after the end of the text, an invalid character of the class
// `nothing`.
struct Here {
  char32_t c;
  uint16_t classes;
  size_t end;  // start of the next character

  bool is(uint16_t any) const { return (classes & any) != 0; }
  bool is_newline() const { return c == '\n' || c == '\r'; }
};

// The class of the position after the end. Sets such as [^\s] do not match there, but do match a
// character without any class.
constexpr uint16_t nothing = 1 << 15;

inline Here at(std::string_view text, size_t i) {
  if (i >= text.size()) return {utf8::code_points, nothing, i};
  const auto byte = static_cast<uint8_t>(text[i]);
  if (byte < 0x80) return {byte, classes.pages[0][byte], i + 1};
  const utf8::Character c = utf8::first(text.substr(i));
  return {c.code_point, classes.of(c.code_point), i + c.bytes};
}

// Returns the end of a run of characters whose classes are wanted; ASCII has a fast path.
template <class Wanted>
size_t run_of(std::string_view text, size_t i, Wanted&& wanted) {
  const std::array<uint16_t, 256>& ascii = classes.pages[0];
  while (true) {
    while (i < text.size()) {
      const auto byte = static_cast<uint8_t>(text[i]);
      if (byte >= 0x80) break;
      if (!wanted(ascii[byte])) return i;
      ++i;
    }
    if (i == text.size()) return i;
    const utf8::Character c = utf8::first(text.substr(i));
    if (!wanted(classes.of(c.code_point))) return i;
    i += c.bytes;
  }
}

// Returns the end of a run of characters of any of these classes.
size_t run(std::string_view text, size_t i, uint16_t any) {
  return run_of(text, i, [any](uint16_t of) { return (of & any) != 0; });
}

// Returns the end of a run of characters of none of these classes.
size_t run_without(std::string_view text, size_t i, uint16_t any) {
  return run_of(text, i, [any](uint16_t of) { return (of & any) == 0; });
}

size_t newlines(std::string_view text, size_t i) {
  while (i < text.size() && (text[i] == '\n' || text[i] == '\r')) ++i;
  return i;
}

// Matches \s+(?!\S)|\s+ : a run of spaces; the last of several is left for the following word.
size_t spaces(std::string_view text, size_t i) {
  size_t last = i, end = i;
  for (Here here = at(text, i); here.is(space); here = at(text, end)) {
    last = end;
    end = here.end;
  }
  return end == text.size() || last == i ? end : last;
}

// Matches \s*[\r\n]+|\s+(?!\S)|\s+ : a run of spaces, up to its last newline if it has one.
size_t spaces_by_line(std::string_view text, size_t i) {
  size_t after_newline = i, last = i, end = i;
  for (Here here = at(text, i); here.is(space); here = at(text, end)) {
    last = end;
    end = here.end;
    if (here.is_newline()) after_newline = end;
  }
  if (after_newline > i) return after_newline;
  return end == text.size() || last == i ? end : last;
}

// Matches 's|'t|'re|'ve|'m|'ll|'d , in lower case or in any case. Returns the end, or i if there is
// no match.
size_t contraction(std::string_view text, size_t i, bool any_case) {
  const auto letter_at = [&](size_t offset) -> char32_t {
    const char32_t c = at(text, offset).c;
    if (!any_case) return c;
    if (c == 0x17F) return 's';  // the long s folds to s
    return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
  };
  if (i >= text.size() || text[i] != '\'') return i;
  const char32_t first = letter_at(i + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at(text, i + 1).end;
  if (first != 'r' && first != 'v' && first != 'l') return i;
  return letter_at(i + 2) == (first == 'l' ? U'l' : U'e') ? i + 3 : i;
}

// Each match_ function returns the end of the match that begins at position i, or i if there is
// none.

size_t match_words(std::string_view text, size_t i) {
  const Here here = at(text, i);
  if (here.c == '\'') {
    if (const size_t end = contraction(text, i, false); end > i) return end;
  }
  const size_t begin = here.c == ' ' ? here.end : i;
  const Here first = here.c == ' ' ? at(text, begin) : here;
  if (first.is(letter)) return run(text, first.end, letter);
  if (first.is(number)) return run(text, first.end, number);
  if (!first.is(space | nothing)) return run_without(text, first.end, space | letter | number);
  return spaces(text, i);
}

size_t digits(std::string_view text, size_t i, int most) {
  Here here = at(text, i);
  for (int count = 0; count < most && here.is(number); ++count) {
    i = here.end;
    here = at(text, i);
  }
  return i;
}

template <int most_digits>
size_t match_words_by_line(std::string_view text, size_t i) {
  const Here here = at(text, i);
  if (here.c == '\'') {
    if (const size_t end = contraction(text, i, true); end > i) return end;
  }
  if (here.is(letter)) return run(text, here.end, letter);
  if (here.is(number)) return digits(text, i, most_digits);
  const Here next = at(text, here.end);
  if (!here.is_newline() && next.is(letter)) return run(text, next.end, letter);
  const Here first = here.c == ' ' ? next : here;
  if (!first.is(space | letter | number | nothing))
    return newlines(text, run_without(text, first.end, space | letter | number));
  return spaces_by_line(text, i);
}

// The two sets of the expression that splits before capitals: [Lu Lt Lm Lo M] and [Ll Lm Lo M].
bool is_upper(const Here& here) { return here.is(letter | mark) && !here.is(lower); }
bool is_lower(const Here& here) { return here.is(letter | mark) && !here.is(upper); }

// Matches upper*lower+ if `need_lower`, otherwise upper+lower* . Returns the end, or i if there is
// no match.
size_t cased_word(std::string_view text, size_t i, bool need_lower) {
  size_t end = i, after_both = i;  // after_both: after the last character in both sets
  Here here = at(text, end);
  for (; is_upper(here); here = at(text, end)) {
    end = here.end;
    if (is_lower(here)) after_both = end;
  }
  if (!is_lower(here)) {
    if (need_lower) return after_both;
    return end;
  }
  for (; is_lower(here); here = at(text, end)) end = here.end;
  return end;
}

size_t match_cased_words(std::string_view text, size_t i) {
  const Here here = at(text, i);
  const bool prefix = !here.is_newline() && !here.is(letter | number | nothing);
  for (const bool need_lower : {true, false}) {
    size_t begin = prefix ? here.end : i;
    size_t end = cased_word(text, begin, need_lower);
    if (end == begin && prefix) end = cased_word(text, begin = i, need_lower);
    if (end > begin) return contraction(text, end, true);
  }
  if (here.is(number)) return digits(text, i, 3);
  const Here first = here.c == ' ' ? at(text, here.end) : here;
  if (!first.is(space | letter | number | nothing)) {
    size_t end = run_without(text, first.end, space | letter | number);
    while (end < text.size() && (text[end] == '\n' || text[end] == '\r' || text[end] == '/')) ++end;
    return end;
  }
  return spaces_by_line(text, i);
}

bool is_ascii_letter(char32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

size_t match_words_and_marks(std::string_view text, size_t i) {
  const Here here = at(text, i), next = at(text, here.end);
  if (here.c < 0x80 && here.is(separator) && is_ascii_letter(next.c)) {
    size_t end = here.end;
    while (end < text.size() && is_ascii_letter(static_cast<uint8_t>(text[end]))) ++end;
    return end;
  }
  if (!here.is_newline() && !here.is(letter | punctuation | symbol) && next.is(letter | mark))
    return run(text, next.end, letter | mark);
  if (here.is(letter | mark)) return run(text, here.end, letter | mark);
  const Here first = here.c == ' ' ? next : here;
  if (first.is(punctuation | symbol))
    return newlines(text, run(text, first.end, punctuation | symbol));
  return spaces_by_line(text, i);
}

template <int most>
size_t match_digits(std::string_view text, size_t i) {
  return digits(text, i, most);
}

size_t match_chinese_and_kana(std::string_view text, size_t i) {
  for (Here here = at(text, i);; here = at(text, i)) {
    if (!(here.c >= 0x4E00 && here.c <= 0x9FA5) && !(here.c >= 0x3040 && here.c <= 0x30FF))
      return i;
    i = here.end;
  }
}

template <size_t (*match)(std::string_view, size_t)>
void find(std::string_view text, std::vector<Stretch>& stretches) {
  size_t done = 0;
  const auto push = [&](size_t begin, size_t end, bool matches) {
    stretches.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), matches});
  };
  for (size_t i = 0; i < text.size();) {
    const size_t end = match(text, i);
    if (end == i) {
      i = at(text, i).end;
      continue;
    }
    if (done < i) push(done, i, false);
    push(i, end, true);
    done = i = end;
  }
  if (done < text.size()) push(done, text.size(), false);
}

constexpr Scanner scanners[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
     find<match_words>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find<match_words_by_line<3>>},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find<match_words_by_line<1>>},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}|)"
     R"( ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find<match_cased_words>},
    {R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
     R"([^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     find<match_words_and_marks>},
    {R"(\p{N}{1,3})", find<match_digits<3>>},
    {R"(\p{N})", find<match_digits<1>>},
    {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", find<match_chinese_and_kana>},
};

}  // namespace

const Scanner* find_scanner(std::string_view expression) {
  const auto* found = std::find_if(std::begin(scanners), std::end(scanners),
                                   [&](const Scanner& s) { return s.expression == expression; });
  return found == std::end(scanners) ? nullptr : found;
}

const Scanner& byte_level_scanner() { return scanners[0]; }

}  // namespace fovea::text
