#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea::text {

// A context-free grammar whose terminals are bytes. A rule may refer to itself, directly or through
// other rules, only at the end of an alternative or after a byte: there is no left recursion.
class Grammar {
 public:
  using Bytes = std::bitset<256>;
  struct Symbol {
    enum Kind : uint8_t { bytes, rule, end } kind;
    int32_t index = 0;  // index of a set of bytes or of a rule
  };
  using Sequence = std::vector<Symbol>;

  // The result of shortest() and shortest_rest() if there is no word.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

  // Bytes outside `usable` cannot be generated.
  explicit Grammar(const Bytes& usable) : usable_(usable) { single_.fill(-1); }

  int32_t add_rule();  // adds a rule without alternatives
  void add(int32_t rule, const Sequence& alternative);
  Symbol one_of(const Bytes& bytes);
  Symbol range(int first, int last);  // one byte from first to last
  Sequence text(std::string_view bytes);
  static Symbol call(int32_t rule) { return {Symbol::rule, rule}; }
  size_t size() const { return symbols_.size(); }

  // Prepares the functions below; call it once, after all rules are added. The time is O(n log n)
  // for n = size(). Throws InvalidArgument if a rule is left-recursive.
  void finish();

  // The flat form: an alternative is a sequence of symbols up to its `end`.
  const Symbol& symbol(int32_t position) const { return symbols_[static_cast<size_t>(position)]; }
  int64_t rules() const { return std::ssize(rules_); }
  const std::vector<int32_t>& alternatives(int32_t rule) const {
    return rules_[static_cast<size_t>(rule)];
  }
  // Number of bytes of the shortest word of a rule, and of the shortest text from a position to the
  // end of its alternative; kNever if there is none.
  int64_t shortest(int32_t rule) const { return shortest_[static_cast<size_t>(rule)]; }
  int64_t shortest_rest(int32_t position) const { return rest_[static_cast<size_t>(position)]; }
  // Rules that can begin with each other have the same order. Otherwise, a rule that can begin with
  // another rule has a larger order than that rule.
  int32_t order(int32_t rule) const { return order_[static_cast<size_t>(rule)]; }
  // Bytes that are in the same sets form one class.
  size_t classes() const { return classes_; }
  uint8_t class_of(uint8_t byte) const { return class_of_[byte]; }
  bool allows(int32_t set, uint8_t byte_class) const {
    return sets_[static_cast<size_t>(set)][first_of_class_[byte_class]];
  }

 private:
  struct Calls {  // the calls of rule r are those from begins[r] to begins[r + 1]
    std::vector<size_t> begins;
    std::vector<int32_t> rules;
  };
  void measure();
  Calls first_calls() const;
  void order_rules();
  void check_recursion() const;
  void classify_bytes();
  // Calls use(rule, whether it is the last symbol) for each rule that the alternative at `first`
  // can call before its first byte.
  template <class Use>
  void each_first_call(int32_t first, Use&& use) const;

  Bytes usable_;
  std::vector<Symbol> symbols_;
  std::vector<std::vector<int32_t>> rules_;  // by rule: the first positions of its alternatives
  std::vector<Bytes> sets_;
  std::unordered_map<Bytes, int32_t> set_numbers_;
  std::array<int32_t, 256> single_;  // by byte: the index of the set of that byte only, or -1
  std::vector<int64_t> rest_;        // by position
  std::vector<int64_t> shortest_;    // by rule
  std::vector<int32_t> order_;       // by rule
  size_t classes_ = 0;
  std::array<uint8_t, 256> class_of_ = {}, first_of_class_ = {};
};

}  // namespace fovea::text
