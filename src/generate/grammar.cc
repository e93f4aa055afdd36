#include "generate/grammar.h"

#include <algorithm>
#include <string>

namespace fovea {

int32_t Grammar::add_rule() {
  rules_.emplace_back();
  return static_cast<int32_t>(rules_.size() - 1);
}

void Grammar::add(int32_t rule, const Sequence& alternative) {
  rules_[static_cast<size_t>(rule)].push_back(static_cast<int32_t>(symbols_.size()));
  symbols_.insert(symbols_.end(), alternative.begin(), alternative.end());
  symbols_.push_back({Symbol::end});
}

Grammar::Symbol Grammar::one_of(const Bytes& bytes) {
  const Bytes kept = bytes & usable_;
  const auto [found, added] =
      set_numbers_.emplace(kept.to_string(), static_cast<int32_t>(sets_.size()));
  if (added) sets_.push_back(kept);
  return {Symbol::bytes, found->second};
}

Grammar::Symbol Grammar::range(int first, int last) {
  Bytes bytes;
  for (int byte = first; byte <= last; ++byte) bytes.set(static_cast<size_t>(byte));
  return one_of(bytes);
}

Grammar::Sequence Grammar::text(std::string_view bytes) {
  Sequence sequence;
  for (const char c : bytes) {
    const int byte = static_cast<unsigned char>(c);
    sequence.push_back(range(byte, byte));
  }
  return sequence;
}

int64_t Grammar::shortest(const Symbol& symbol) const {
  if (symbol.kind == Symbol::end) return 0;
  const auto index = static_cast<size_t>(symbol.index);
  if (symbol.kind == Symbol::rule) return shortest_[index];
  return sets_[index].any() ? 1 : kNever;
}

// Lengths only fall. Most rules call earlier ones, so that few rounds suffice.
void Grammar::finish() {
  rest_.assign(symbols_.size(), kNever);
  shortest_.assign(rules_.size(), kNever);
  bool changed = true;
  while (changed) {
    changed = false;
    for (size_t rule = 0; rule < rules_.size(); ++rule) {
      for (const int32_t first : rules_[rule]) {
        const int64_t length = measure(static_cast<size_t>(first));
        changed |= length < shortest_[rule];
        shortest_[rule] = std::min(shortest_[rule], length);
      }
    }
  }
}

int64_t Grammar::measure(size_t first) {
  size_t end = first;
  while (symbols_[end].kind != Symbol::end) ++end;
  rest_[end] = 0;
  for (size_t i = end; i-- > first;) {
    rest_[i] = std::min(kNever, shortest(symbols_[i]) + rest_[i + 1]);
  }
  return rest_[first];
}

}  // namespace fovea
