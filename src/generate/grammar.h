#pragma once

#include <bitset>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A context-free grammar whose letters are bytes. Rules may refer to one another and to
// themselves, but only at the end of an alternative or behind a byte.
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
  explicit Grammar(const Bytes& usable) : usable_(usable) {}

  int32_t add_rule();  // has no alternatives yet
  void add(int32_t rule, const Sequence& alternative);
  Symbol one_of(const Bytes& bytes);
  Symbol range(int first, int last);  // one byte of them
  Sequence text(std::string_view bytes);
  static Symbol call(int32_t rule) { return {Symbol::rule, rule}; }
  size_t size() const { return symbols_.size(); }

  // To be called once all is added: computes the length of the shortest words.
  void finish();

  // The flat form: an alternative is a run of symbols up to its `end`.
  const Symbol& symbol(int32_t position) const { return symbols_[static_cast<size_t>(position)]; }
  const std::vector<int32_t>& alternatives(int32_t rule) const {
    return rules_[static_cast<size_t>(rule)];
  }
  bool allows(int32_t set, uint8_t byte) const { return sets_[static_cast<size_t>(set)][byte]; }
  // Bytes from a position to the end of its alternative, at least; kNever where none can be
  // written.
  int64_t shortest_rest(int32_t position) const { return rest_[static_cast<size_t>(position)]; }

 private:
  int64_t shortest(const Symbol& symbol) const;
  int64_t measure(size_t first);  // an alternative

  Bytes usable_;
  std::vector<Symbol> symbols_;
  std::vector<std::vector<int32_t>> rules_;  // the first positions of their alternatives
  std::vector<Bytes> sets_;
  std::map<std::string, int32_t> set_numbers_;
  std::vector<int64_t> rest_;      // by position
  std::vector<int64_t> shortest_;  // by rule
};

}  // namespace fovea
