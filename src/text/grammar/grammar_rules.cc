#include "grammar/grammar_rules.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "base/stop.h"

namespace fovea::text {
namespace {

// A schema of a few kilobytes has thousands of symbols; 100,000 symbols take megabytes.
constexpr size_t kMostSymbols = 100'000;

}  // namespace

Grammar::Sequence operator+(Grammar::Sequence left, const Grammar::Sequence& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

void GrammarRules::add(Symbol rule, const std::vector<Sequence>& alternatives) {
  stop_if_requested();
  for (const Sequence& alternative : alternatives) grammar_.add(rule.index, alternative);
  check(grammar_.size() <= kMostSymbols,
        "{}: too large; expected fewer repetitions or alternatives", name_);
}

Grammar::Symbol GrammarRules::one_of(const std::vector<Sequence>& alternatives) {
  const Symbol rule = Grammar::call(grammar_.add_rule());
  add(rule, alternatives);
  return rule;
}

Grammar::Symbol GrammarRules::repeated(const Sequence& first, const Sequence& next, int64_t least,
                                       std::optional<int64_t> most) {
  if (most == 0) return one_of({{}});
  const int64_t more = std::max<int64_t>(least, 1) - 1;
  std::vector<Sequence> ways = {first + times(next, more, most ? *most - 1 : most)};
  if (least == 0) ways.emplace_back();
  return one_of(ways);
}

// Counts are sums of powers of two, and a rule of 2^i parts calls the rule of 2^(i-1) parts twice,
// so that a few rules express any count.
Grammar::Sequence GrammarRules::times(const Sequence& part, int64_t least,
                                      std::optional<int64_t> most) {
  const auto largest = static_cast<uint64_t>(std::max(least, most.value_or(0)));
  std::vector<Symbol> powers = {one_of({part})};  // rules for 2^i parts
  std::vector<Symbol> up_to = {one_of({{}})};     // rules for 0 to 2^i - 1 parts
  for (uint64_t i = 1; i < uint64_t{std::bit_width(largest)}; ++i) {
    const Symbol half = powers.back(), fewer = up_to.back();
    powers.push_back(one_of({{half, half}}));
    up_to.push_back(one_of({{half, fewer}, {fewer}}));
  }
  Sequence exactly;
  Symbol rest = up_to[0];
  if (!most) rest = Grammar::call(grammar_.add_rule()), add(rest, {{}, part + Sequence{rest}});
  for (size_t i = 0; i < powers.size(); ++i) {
    if ((least >> i & 1) != 0) exactly.push_back(powers[i]);
    // If bit i is set: either 2^i parts and the rest, or fewer than 2^i parts.
    if (most && ((*most - least) >> i & 1) != 0) rest = one_of({{powers[i], rest}, {up_to[i]}});
  }
  exactly.push_back(rest);
  return exactly;
}

}  // namespace fovea::text
