#include "grammar/number_multiples.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "base/error.h"

namespace fovea::text {
namespace {

using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

constexpr int kDigitsOfMultiples = 15;
constexpr int kMostShift = 9;  // products of two such numbers fit into 64 bits
constexpr int64_t kMostMultiples = 1000;

int64_t power_of_ten(int exponent) {
  int64_t power = 1;
  for (; exponent > 0; --exponent) power *= 10;
  return power;
}

// A number times 10^shift, without zeros at its end unless shift is 0.
struct Shifted {
  int64_t digits = 0;
  int shift = 0;
};

Shifted shifted(const std::string& number) {
  const size_t e = std::min(number.find_first_of("eE"), number.size());
  const size_t point = std::min(number.find('.'), e);
  std::string digits = number.substr(0, point);
  if (point < e) digits += number.substr(point + 1, e - point - 1);
  int64_t shift = point < e ? static_cast<int64_t>(e - point - 1) : 0;
  if (e < number.size()) shift -= std::stoll(number.substr(e + 1));
  while (shift > 0 && digits.size() > 1 && digits.back() == '0') digits.pop_back(), --shift;
  for (; shift < 0 && digits.size() <= kMostShift; ++shift) digits += '0';
  check(shift >= 0 && shift <= kMostShift && digits.size() <= kMostShift + 1,
        "{} has too many digits beside multipleOf; expected at most {}", number, kMostShift);
  return {std::stoll(digits), static_cast<int>(shift)};
}

std::string text_of_shifted(int64_t digits, int shift) {
  std::string text = std::to_string(std::abs(digits));
  if (shift > 0) {
    const auto decimals = static_cast<size_t>(shift);
    if (text.size() <= decimals) text.insert(0, decimals + 1 - text.size(), '0');
    text.insert(text.size() - decimals, ".");
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return (digits < 0 ? "-" : "") + text;
}

// The decimal digits of multiples, from left to right: the state is the remainder so far.
class MultipleRules {
 public:
  MultipleRules(Shifted step, Grammar& grammar, JsonRules& rules)
      : step_(step), grammar_(grammar), rules_(rules) {
    for (; step_.shift == 0 && step_.digits % 10 == 0; ++zeros_) step_.digits /= 10;
  }

  Symbol magnitudes(bool zero) {
    std::vector<Symbols> ways = after_digit('1', [this](int64_t remainder) {
      return whole(kDigitsOfMultiples - 1 - zeros_, remainder);
    });
    if (zero)
      ways.push_back(rules_.text("0") + (step_.shift > 0 ? Symbols{fraction(0, 0)} : Symbols{}));
    return rules_.one_of(ways);
  }

 private:
  // Returns ways that begin with a digit from `first` to 9; `rest` returns the rule for the digits
  // after a remainder.
  template <class Rest>
  std::vector<Symbols> after_digit(char first, Rest&& rest, int64_t before = 0) {
    std::map<int64_t, Grammar::Bytes> digits;  // by remainder
    for (char c = first; c <= '9'; ++c)
      digits[(before * 10 + (c - '0')) % step_.digits].set(static_cast<size_t>(c));
    std::vector<Symbols> ways;
    for (const auto& [remainder, bytes] : digits)
      ways.push_back({grammar_.one_of(bytes), rest(remainder)});
    return ways;
  }

  // Returns the rule for the rest of a number after digits before the point.
  Symbol whole(int digits, int64_t remainder) {
    const auto [known, added] = wholes_.try_emplace({digits, remainder}, Symbol{});
    if (!added) return known->second;
    const Symbol rule = known->second = rules_.rule();
    std::vector<Symbols> ways = {{fraction(0, remainder)}};
    if (digits > 0)
      std::ranges::move(after_digit(
                            '0', [&](int64_t next) { return whole(digits - 1, next); }, remainder),
                        std::back_inserter(ways));
    rules_.add(rule, ways);
    return rule;
  }

  // Returns the rule for the rest of a number after `decimal` digits after the point.
  Symbol fraction(int decimal, int64_t remainder) {
    const auto [known, added] = fractions_.try_emplace({decimal, remainder}, Symbol{});
    if (!added) return known->second;
    const Symbol rule = known->second = rules_.rule();
    std::vector<Symbols> ways;
    if (remainder * (power_of_ten(step_.shift - decimal) % step_.digits) % step_.digits == 0)
      ways.push_back(rules_.text(std::string(static_cast<size_t>(zeros_), '0')));
    if (decimal < step_.shift) {
      for (const Symbols& way :
           after_digit('0', [&](int64_t next) { return fraction(decimal + 1, next); }, remainder))
        ways.push_back(decimal == 0 ? rules_.text(".") + way : way);
    }
    rules_.add(rule, ways);
    return rule;
  }

  Shifted step_;
  int zeros_ = 0;  // at the end of every multiple
  Grammar& grammar_;
  JsonRules& rules_;
  std::map<std::pair<int, int64_t>, Symbol> wholes_, fractions_;
};

// Returns the first multiple at or above the bound, divided by the step; sign -1: at or below it.
int64_t first_multiple(const NumberBound& bound, const Shifted& step, int sign) {
  const Shifted limit = shifted(bound.number);
  const int64_t above = sign * limit.digits * power_of_ten(step.shift),
                below = step.digits * power_of_ten(limit.shift);
  int64_t multiple = above / below + (above > 0 && above % below != 0 ? 1 : 0);
  if (bound.exclusive && multiple * below == above) ++multiple;
  return sign * multiple;
}

}  // namespace

std::optional<size_t> decimals_of(const std::string& step) {
  const Shifted unit = shifted(step);
  return unit.digits == 1 ? std::optional(static_cast<size_t>(unit.shift)) : std::nullopt;
}

Grammar::Symbol multiples_of(const std::string& step, const std::optional<NumberBound>& least,
                             const std::optional<NumberBound>& most, bool whole, Grammar& grammar,
                             JsonRules& rules) {
  Shifted unit = shifted(step);
  check(unit.digits > 0, "multipleOf is {}; expected a number above 0", step);
  if (whole) unit = {unit.digits / std::gcd(unit.digits, power_of_ten(unit.shift)), 0};
  if (least && most) {
    const int64_t first = first_multiple(*least, unit, 1), last = first_multiple(*most, unit, -1);
    if (last - first >= kMostMultiples)
      fail(ErrorKind::Unsupported,
           "multipleOf leaves {} numbers between the bounds; expected at most {}", last - first + 1,
           kMostMultiples);
    std::vector<Symbols> values;
    for (int64_t i = first; i <= last; ++i)
      values.push_back(rules.text(text_of_shifted(i * unit.digits, unit.shift)));
    return rules.one_of(values);
  }
  MultipleRules multiples(unit, grammar, rules);
  if (!least && !most)
    return rules.one_of(
        {{multiples.magnitudes(true)}, rules.text("-") + Symbols{multiples.magnitudes(true)}});
  const NumberBound& bound = least ? *least : *most;
  const bool with_zero = !bound.exclusive;
  if (std::stod(bound.number) != 0 || (!with_zero && unit.shift > 0))
    fail(ErrorKind::Unsupported,
         "multipleOf cannot be combined with one bound; expected two bounds, or 0");
  const Symbol magnitude = multiples.magnitudes(with_zero);
  return least ? magnitude : rules.one_of({rules.text("-") + Symbols{magnitude}});
}

}  // namespace fovea::text
