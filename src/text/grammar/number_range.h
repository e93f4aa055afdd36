#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "grammar/json_rules.h"

namespace fovea::text {

struct NumberBound {
  std::string number;      // JSON text
  bool exclusive = false;  // the bound itself is not in the range
};

// Rules of the JSON numbers in a range: without exponents, with up to 20 digits before the
// point, 18 without a bound, and 15 after it. The rules of digits that no bound restricts are
// shared by all ranges.
class NumberRanges {
 public:
  NumberRanges(Grammar& grammar, JsonRules& rules) : grammar_(grammar), rules_(rules) {}

  // Returns the rule of the numbers between the bounds. An unset bound, and one of more than 20
  // digits that no number exceeds, restricts nothing. `fraction`: the most digits after the point,
  // or 0 for numbers without one. The rule has no alternative if the range is empty. Throws
  // InvalidArgument if a bound has more than 15 digits after the point.
  Grammar::Symbol between(const std::optional<NumberBound>& least,
                          const std::optional<NumberBound>& most, size_t fraction = kAnyFraction);
  static constexpr size_t kAnyFraction = static_cast<size_t>(-1);

 private:
  struct Decimal;
  struct Limit;
  struct Range;
  static Decimal decimal_of(const std::string& number);
  Grammar::Symbol magnitudes(Range& range);
  Grammar::Symbol rest(Range& range, size_t index, bool at_low, bool at_high);

  Grammar& grammar_;
  JsonRules& rules_;
  // By the number of digits before the point that are left, those after it, and Range::fraction.
  std::map<std::tuple<size_t, size_t, size_t>, Grammar::Symbol> free_;
};

}  // namespace fovea::text
