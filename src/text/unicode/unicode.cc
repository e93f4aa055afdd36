#include "unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "unicode/utf8.h"

namespace fovea::text::unicode {
namespace {

constexpr uint64_t class_runs[] = {
#include "unicode/unicode_classes.inc"
};
constexpr uint32_t script_runs[] = {
#include "unicode/unicode_scripts.inc"
};

// The capital letters of Unicode 16 and 17 that older versions of utf8proc lack.
struct NewCapitals {
  char32_t first, last;
  int32_t to_lower;
};
constexpr NewCapitals new_capitals[] = {
    {0x1C89, 0x1C89, 1},      {0xA7CB, 0xA7CB, 0x264 - 0xA7CB},
    {0xA7CC, 0xA7CC, 1},      {0xA7CE, 0xA7CE, 1},
    {0xA7D2, 0xA7D2, 1},      {0xA7D4, 0xA7D4, 1},
    {0xA7DA, 0xA7DA, 1},      {0xA7DC, 0xA7DC, 0x19B - 0xA7DC},
    {0x10D50, 0x10D65, 0x20}, {0x16EA0, 0x16EB8, 0x1B},
};

}  // namespace

const Classes classes;

Classes::Classes() {
  size_t used = 0, run = 0;
  for (size_t page = 0; page < page_of.size(); ++page) {
    std::array<uint16_t, 256>& here = pages[used];
    for (size_t i = 0; i < 256; ++i) {
      const uint64_t c = page << 8 | i;
      while (run + 1 < std::size(class_runs) && class_runs[run + 1] >> 16 <= c) ++run;
      here[i] = static_cast<uint16_t>(class_runs[run]);
    }
    const bool repeated = used > 0 && here == pages[used - 1];
    page_of[page] = static_cast<uint16_t>(repeated ? used - 1 : used);
    if (!repeated) ++used;
  }
}

bool is_chinese(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) ||
         within(0x2A700, 0x2B73F) || within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) ||
         within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

std::array<char32_t, 2> lowercase(char32_t c) {
  if (c < 0x80) return {c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c, 0};
  if (c == 0x130) return {'i', 0x307};
  for (const NewCapitals& range : new_capitals) {
    if (c >= range.first && c <= range.last) return {c + static_cast<char32_t>(range.to_lower), 0};
  }
  return {static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), 0};
}

int script(char32_t c) {
  const auto* run = std::upper_bound(std::begin(script_runs), std::end(script_runs), c << 8 | 0xFF);
  return static_cast<int>(*(run - 1) & 0xFF);
}

bool is_unspaced(char32_t c) {
  static const std::array scripts = {script(U'\u4E00'), script(U'\u0E01'), script(U'\u0E81'),
                                     script(U'\u1780'), script(U'\u1000')};
  return std::find(scripts.begin(), scripts.end(), script(c)) != scripts.end();
}

}  // namespace fovea::text::unicode
