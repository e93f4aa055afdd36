#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fovea {

// A context-free grammar whose letters are bytes. Rules may refer to one another and to
// themselves, but only at the end of an alternative or behind a byte: no left recursion.
class Grammar {
 public:
  using Bytes = std::bitset<256>;
  struct Symbol {
    enum Kind : uint8_t { bytes, rule, end } kind;
    int32_t index = 0;  // of a set of bytes or of a rule
  };
  using Sequence = std::vector<Symbol>;

  // A language without words is this far from its end.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max() / 4;

  // Letters outside of `usable` cannot be written.
  explicit Grammar(const Bytes& usable) : usable_(usable) { single_.fill(-1); }

  int32_t add_rule();  // has no alternatives yet
  void add(int32_t rule, const Sequence& alternative);
  Symbol one_of(const Bytes& bytes);
  Symbol range(int first, int last);  // one byte of them
  Sequence text(std::string_view bytes);
  static Symbol call(int32_t rule) { return {Symbol::rule, rule}; }
  size_t size() const { return symbols_.size(); }

  // To be called once all is added, before what follows. Takes time in proportion to the size.
  // InvalidArgument where a rule begins with itself and something follows.
  void finish();

  // The flat form: an alternative is a run of symbols up to its `end`.
  const Symbol& symbol(int32_t position) const { return symbols_[static_cast<size_t>(position)]; }
  int64_t rules() const { return std::ssize(rules_); }
  const std::vector<int32_t>& alternatives(int32_t rule) const {
    return rules_[static_cast<size_t>(rule)];
  }
  // Bytes of the shortest word, and from a position to the end of its alternative; kNever where
  // none can be written.
  int64_t shortest(int32_t rule) const { return shortest_[static_cast<size_t>(rule)]; }
  int64_t shortest_rest(int32_t position) const { return rest_[static_cast<size_t>(position)]; }
  // Rules that begin with one another have the same number; one that begins with another rule has
  // the larger number.
  int32_t order(int32_t rule) const { return order_[static_cast<size_t>(rule)]; }
  // Bytes that no set tells apart are of one class.
  size_t classes() const { return classes_; }
  uint8_t class_of(uint8_t byte) const { return class_of_[byte]; }
  bool allows(int32_t set, uint8_t byte_class) const {
    return sets_[static_cast<size_t>(set)][first_of_class_[byte_class]];
  }

 private:
  struct Calls {  // of each rule: those from begins[rule] to begins[rule + 1]
    std::vector<size_t> begins;
    std::vector<int32_t> rules;
  };
  void measure();
  Calls first_calls() const;
  void order_rules();
  void check_recursion() const;
  void classify_bytes();
  // Visits the calls of an alternative before its first byte: use(rule, whether it stands last).
  template <class Use>
  void each_first_call(int32_t first, Use&& use) const;

  Bytes usable_;
  std::vector<Symbol> symbols_;
  std::vector<std::vector<int32_t>> rules_;  // the first positions of their alternatives
  std::vector<Bytes> sets_;
  std::unordered_map<Bytes, int32_t> set_numbers_;
  std::array<int32_t, 256> single_;  // numbers of the sets of one byte, or -1
  std::vector<int64_t> rest_;        // by position
  std::vector<int64_t> shortest_;    // by rule
  std::vector<int32_t> order_;       // by rule
  size_t classes_ = 0;
  std::array<uint8_t, 256> class_of_ = {}, first_of_class_ = {};
};

}  // namespace fovea
