#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/scanners.h"

namespace fovea::text {

// The pattern of a part of tokenizer.json: a string, or a regular expression in Oniguruma's dialect
// (Ruby syntax). The expressions of well-known tokenizers are recognised by their text and have
// hand-written scanners; other expressions use PCRE2 with limits on time and backtracking.
class Pattern {
 public:
  static Pattern text(std::string text);
  // Throws Unsupported, naming `where`, if PCRE2 does not support the expression or if it is too
  // long.
  static Pattern regex(const std::string& expression, const std::string& where);

  // Appends the matches and the text between them, in order. Throws Unsupported if an expression
  // exceeds the limits.
  void find(std::string_view text, std::vector<Stretch>& stretches) const;

 private:
  struct Expression;

  std::string text_;
  const Scanner* scanner_ = nullptr;
  std::shared_ptr<const Expression> expression_;
};

}  // namespace fovea::text
