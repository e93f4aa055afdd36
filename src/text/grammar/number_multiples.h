#pragma once

#include <optional>
#include <string>

#include "grammar/json_rules.h"
#include "grammar/number_range.h"

namespace fovea::text {

// Returns how many digits after the point the multiples of 1, 0.1, 0.01, ... have; unset for other
// steps.
std::optional<size_t> decimals_of(const std::string& step);

// Returns the rule of the multiples of `step`, a positive number in JSON, between the bounds: with
// up to 15 digits, without exponents. `whole`: only numbers without a point. Throws Unsupported if
// bounds other than 0 leave more than a few hundred numbers, and InvalidArgument if `step` is not
// positive or has too many digits.
Grammar::Symbol multiples_of(const std::string& step, const std::optional<NumberBound>& least,
                             const std::optional<NumberBound>& most, bool whole, Grammar& grammar,
                             JsonRules& rules);

}  // namespace fovea::text
