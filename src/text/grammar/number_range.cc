#include "grammar/number_range.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace fovea::text {
namespace {

using Symbol = Grammar::Symbol;
using Symbols = Grammar::Sequence;

// Digits before the point with a bound above, as many as 64 bits need, and without one, as many as
// 64 bits hold; and digits after the point.
constexpr size_t kWholeDigits = 20, kFreeDigits = 18, kMostFractionDigits = 15;

}  // namespace

struct NumberRanges::Decimal {
  bool negative = false;
  std::string whole, fraction;  // without zeros at the left of `whole` and the right of `fraction`
  bool zero() const { return whole.empty() && fraction.empty(); }
  bool large() const { return whole.size() > kWholeDigits; }
};

NumberRanges::Decimal NumberRanges::decimal_of(const std::string& number) {
  Decimal out;
  const size_t first = number[0] == '-' ? 1 : 0;
  const size_t e = std::min(number.find_first_of("eE"), number.size());
  const size_t point = std::min(number.find('.'), e);
  std::string digits = number.substr(first, point - first);
  int64_t at = std::ssize(digits) + (e < number.size() ? std::stoll(number.substr(e + 1)) : 0);
  if (point < e) digits += number.substr(point + 1, e - point - 1);
  if (at < 0) digits.insert(0, static_cast<size_t>(-at), '0'), at = 0;
  if (at > std::ssize(digits)) digits.resize(static_cast<size_t>(at), '0');
  out.whole = digits.substr(0, static_cast<size_t>(at));
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  out.fraction = digits.substr(static_cast<size_t>(at));
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  out.negative = first == 1 && !out.zero();
  check(out.fraction.size() <= kMostFractionDigits,
        "{} has too many digits; expected at most {} after the point", number, kMostFractionDigits);
  return out;
}

// A bound of magnitudes with `whole_digits` digits before the point, as all its digits.
struct NumberRanges::Limit {
  std::string digits;  // [whole_digits + kMostFractionDigits]
  bool exclusive = false;

  Limit(const Decimal& value, size_t whole_digits, bool is_exclusive)
      : digits(std::string(whole_digits - value.whole.size(), '0') + value.whole + value.fraction),
        exclusive(is_exclusive) {
    digits.resize(whole_digits + kMostFractionDigits, '0');
  }
  bool zeros_from(size_t index) const {
    return digits.find_first_not_of('0', index) == std::string::npos;
  }
};

// Magnitudes from `least` to `most`. Their rules are built digit by digit, from left to right:
// which digits may follow depends on whether the digits so far equal those of a bound.
struct NumberRanges::Range {
  Decimal least;
  bool above;  // `least` is exclusive
  std::optional<Decimal> most;
  bool below;
  size_t fraction;  // most digits after the point

  size_t whole_digits = 1;  // digits before the point
  std::optional<Limit> low = {}, high = {};
  std::map<std::tuple<size_t, bool, bool>, Symbol> known = {};

  // Returns whether a number may end before the digit at `index`: its further digits are zeros.
  bool may_end(size_t index, bool at_low, bool at_high) const {
    if (index < whole_digits) return false;
    if (at_low && (low->exclusive || !low->zeros_from(index))) return false;
    return !at_high || !high->exclusive || !high->zeros_from(index);
  }
};

Symbol NumberRanges::magnitudes(Range& range) {
  const auto digits_of = [](const Decimal& value) {
    return std::max<size_t>(value.whole.size(), 1);
  };
  Decimal power;  // the smallest number of `whole_digits` digits
  power.whole = "1";
  std::vector<Symbols> ways;
  const size_t most =
      range.most ? digits_of(*range.most) : std::max(kFreeDigits, digits_of(range.least));
  for (size_t whole_digits = digits_of(range.least); whole_digits <= most; ++whole_digits) {
    range.whole_digits = whole_digits;
    range.known.clear();
    power.whole.resize(whole_digits, '0');
    const bool first = whole_digits == digits_of(range.least);
    range.low =
        first ? Limit(range.least, whole_digits, range.above) : Limit(power, whole_digits, false);
    range.high.reset();
    if (range.most && whole_digits == most)
      range.high = Limit(*range.most, whole_digits, range.below);
    ways.push_back({rest(range, 0, true, range.high.has_value())});
  }
  return rules_.one_of(ways);
}

// Returns the rule of the rest of a number from the digit at `index` on.
Symbol NumberRanges::rest(Range& range, size_t index, bool at_low, bool at_high) {
  const size_t end = range.whole_digits + range.fraction;
  // A number that equals the bound so far, whose further digits are zeros, cannot get below it.
  if (at_low && !range.low->exclusive && range.low->zeros_from(index)) at_low = false;
  const size_t left = range.whole_digits - std::min(index, range.whole_digits);
  const auto key = std::tuple(index, at_low, at_high);
  const auto free_key = std::tuple(left, end - std::max(index, range.whole_digits), range.fraction);
  const bool is_free = !at_low && !at_high;
  if (const auto found = range.known.find(key); found != range.known.end()) return found->second;
  if (const auto found = free_.find(free_key); is_free && found != free_.end())
    return found->second;
  std::vector<Symbols> ways;
  if (range.may_end(index, at_low, at_high)) ways.emplace_back();
  if (index < end) {
    const Symbols point = index == range.whole_digits ? rules_.text(".") : Symbols();
    const char low = at_low ? range.low->digits[index] : '0';
    const char high = at_high ? range.high->digits[index] : '9';
    // Runs of digits that are followed by the same rule: the bounds' digits, and those between.
    for (char first = low, last = low; first <= high; first = static_cast<char>(last + 1)) {
      const bool is_low = at_low && first == low, is_high = at_high && first == high;
      if (is_low || is_high)
        last = first;
      else
        last = at_high ? static_cast<char>(high - 1) : high;
      ways.push_back(point +
                     Symbols{grammar_.range(first, last), rest(range, index + 1, is_low, is_high)});
    }
  }
  const Symbol rule = rules_.one_of(ways);
  if (is_free)
    free_.emplace(free_key, rule);
  else
    range.known.emplace(key, rule);
  return rule;
}

Symbol NumberRanges::between(const std::optional<NumberBound>& least,
                             const std::optional<NumberBound>& most, size_t fraction) {
  fraction = std::min(fraction, kMostFractionDigits);
  std::optional<Decimal> low, high;
  if (least) low = decimal_of(least->number);
  if (most) high = decimal_of(most->number);
  if (low && low->large()) {
    if (!low->negative) return rules_.one_of({});
    low.reset();
  }
  if (high && high->large()) {
    if (high->negative) return rules_.one_of({});
    high.reset();
  }
  std::vector<Symbols> ways;
  if (!high || !high->negative) {
    const bool bounded = low && !low->negative;
    Range range{bounded ? *low : Decimal(), bounded && least->exclusive, high,
                high && most->exclusive, fraction};
    ways.push_back({magnitudes(range)});
  }
  if (!low || low->negative) {  // -x, where x is from -high to -low and above 0
    const bool bounded = high && high->negative;
    Range range{bounded ? *high : Decimal(), !bounded || most->exclusive, low,
                low && least->exclusive, fraction};
    ways.push_back(rules_.text("-") + Symbols{magnitudes(range)});
  }
  return rules_.one_of(ways);
}

}  // namespace fovea::text
