#pragma once

#include <array>
#include <string_view>

namespace fovea::jinja {

// Characters whose upper case has several characters, which utf8proc does not give.
struct SpecialCase {
  char32_t character;
  std::u32string_view upper, title;
};
extern const std::array<SpecialCase, 102> special_cases;  // sorted by character

}  // namespace fovea::jinja
