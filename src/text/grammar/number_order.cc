#include "grammar/number_order.h"

#include <algorithm>
#include <cstdint>

namespace fovea::text {
namespace {

// A number as 0.DIGITS times 10^exponent.
struct Scientific {
  int sign = 0;
  int64_t exponent = 0;
  std::string digits;  // without zeros at its ends

  explicit Scientific(const std::string& number) {
    const size_t e = std::min(number.find_first_of("eE"), number.size());
    const size_t point = std::min(number.find('.'), e);
    const size_t first = number[0] == '-' ? 1 : 0;
    digits = number.substr(first, point - first);
    exponent = static_cast<int64_t>(digits.size());
    if (e < number.size()) exponent += std::stoll(number.substr(e + 1));
    if (point < e) digits += number.substr(point + 1, e - point - 1);
    const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
    digits.erase(0, zeros);
    digits.erase(digits.find_last_not_of('0') + 1);
    exponent -= static_cast<int64_t>(zeros);
    if (!digits.empty()) sign = first == 1 ? -1 : 1;
  }
};

}  // namespace

std::strong_ordering compare_numbers(const std::string& a, const std::string& b) {
  const Scientific left(a), right(b);
  if (left.sign != right.sign || left.sign == 0) return left.sign <=> right.sign;
  // Of negative numbers, the one with the greater digits is the less.
  const Scientific &x = left.sign > 0 ? left : right, &y = left.sign > 0 ? right : left;
  return x.exponent != y.exponent ? x.exponent <=> y.exponent : x.digits <=> y.digits;
}

}  // namespace fovea::text
