#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::text {

// A part of a text that matches a pattern, or that lies between two matches.
struct Stretch {
  uint32_t begin, end;
  bool matches;
};

// A hand-written equivalent of a regular expression.
struct Scanner {
  std::string_view expression;
  void (*find)(std::string_view text, std::vector<Stretch>& stretches);  // appends the parts
};

// Returns the scanner of an expression, or null. Expressions are compared as strings.
const Scanner* find_scanner(std::string_view expression);

// Returns the scanner of the ByteLevel pre-tokenizer.
const Scanner& byte_level_scanner();

}  // namespace fovea::text
