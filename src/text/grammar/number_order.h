#pragma once

#include <compare>
#include <string>

namespace fovea::text {

// Compares two numbers in JSON exactly; doubles would hold 2^63 - 1 and 2^63 for equal.
std::strong_ordering compare_numbers(const std::string& a, const std::string& b);

}  // namespace fovea::text
