#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fovea::text::utf8 {

constexpr char32_t replacement = 0xFFFD;
constexpr char32_t code_points = 0x110000;

// A character of a text. A byte that does not start a valid sequence (including overlong forms,
// surrogates and truncated sequences) is a separate character: U+FFFD, not valid, one byte long.
struct Character {
  char32_t code_point;
  uint32_t bytes;
  bool valid;
};
Character first(std::string_view text);  // the text must not be empty
Character last(std::string_view text);   // the text must not be empty

// Returns the number of bytes of complete valid characters at the start.
size_t valid_prefix(std::string_view text);
// Returns the number of bytes at the end that may be the start of an incomplete character: 0 to 3.
size_t incomplete_suffix(std::string_view text);
void append(std::string& text, char32_t code_point);
std::string repaired(std::string_view text);  // with U+FFFD for each invalid byte

}  // namespace fovea::text::utf8
