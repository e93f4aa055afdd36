#include "unicode/pattern_classes.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <vector>

#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::text {
namespace {

struct Range {
  char32_t first, last;
  uint16_t classes;
};

// Finds the code points that have classes in unicode.h but are unassigned in PCRE2.
std::vector<Range> find_younger() {
  const std::string text = R"(\p{Cn}+)";
  std::string all;
  for (char32_t c = 0x80; c < utf8::code_points; ++c) {
    if (unicode::is(c, 0xFFFF) && !(c >= 0xD800 && c < 0xE000)) utf8::append(all, c);
  }
  int error = 0;
  size_t at = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF, &error, &at,
                    nullptr),
      pcre2_code_free);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  std::vector<Range> ranges;
  size_t from = 0;
  while (code && pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(all.data()), all.size(), from,
                             PCRE2_NO_UTF_CHECK, match.get(), nullptr) > 0) {
    const size_t* bounds = pcre2_get_ovector_pointer(match.get());
    for (size_t i = bounds[0]; i < bounds[1];) {
      const utf8::Character c = utf8::first(std::string_view(all).substr(i));
      const uint16_t classes = unicode::classes.of(c.code_point);
      const bool next = !ranges.empty() && ranges.back().last + 1 == c.code_point &&
                        ranges.back().classes == classes;
      if (next) {
        ++ranges.back().last;
      } else {
        ranges.push_back({c.code_point, c.code_point, classes});
      }
      i += c.bytes;
    }
    from = bounds[1];
  }
  return ranges;
}

}  // namespace

std::string younger_than_pcre2(uint16_t any) {
  static const std::vector<Range> ranges = find_younger();
  std::string set;
  for (const Range& range : ranges) {
    if ((range.classes & any) == 0) continue;
    set += fmt::format("\\x{{{:x}}}", static_cast<uint32_t>(range.first));
    if (range.last > range.first)
      set += fmt::format("-\\x{{{:x}}}", static_cast<uint32_t>(range.last));
  }
  return set;
}

}  // namespace fovea::text
