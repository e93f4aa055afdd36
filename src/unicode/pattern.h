#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/scanners.h"

namespace fovea {

// What a part of tokenizer.json looks for in a text: a string, or a regular expression as
// Oniguruma (Ruby syntax) understands it. The expressions that well-known tokenizers cut with are
// recognised by their text and have scanners of their own; others go through PCRE2, within limits:
// one that backtracks without end is refused when it does.
class Pattern {
 public:
  static Pattern text(std::string text);
  // Unsupported, with `where`, for what PCRE2 cannot do or what is too large.
  static Pattern regex(const std::string& expression, const std::string& where);

  // Appends the stretches of the text, matches and what lies between them, in order.
  void find(std::string_view text, std::vector<Stretch>& stretches) const;

 private:
  struct Expression;

  std::string text_;
  const Scanner* scanner_ = nullptr;
  std::shared_ptr<const Expression> expression_;
};

}  // namespace fovea
