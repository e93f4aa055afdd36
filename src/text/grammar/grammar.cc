#include "grammar/grammar.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "base/error.h"

namespace fovea::text {

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
  const auto [found, added] =
      set_numbers_.emplace(bytes & usable_, static_cast<int32_t>(sets_.size()));
  if (added) sets_.push_back(found->first);
  return {Symbol::bytes, found->second};
}

Grammar::Symbol Grammar::range(int first, int last) {
  int32_t& known = single_[static_cast<size_t>(first)];
  if (first == last && known >= 0) return {Symbol::bytes, known};
  Bytes bytes;
  for (int byte = first; byte <= last; ++byte) bytes.set(static_cast<size_t>(byte));
  const Symbol symbol = one_of(bytes);
  if (first == last) known = symbol.index;
  return symbol;
}

Grammar::Sequence Grammar::text(std::string_view bytes) {
  Sequence sequence;
  for (const char c : bytes) {
    const int byte = static_cast<unsigned char>(c);
    sequence.push_back(range(byte, byte));
  }
  return sequence;
}

void Grammar::finish() {
  measure();
  order_rules();
  check_recursion();
  classify_bytes();
}

// Computes the shortest lengths (Knuth 1977, "A generalization of Dijkstra's algorithm"): the rule
// with the shortest candidate becomes known next, since each alternative is at least as long as the
// rules that it calls.
void Grammar::measure() {
  struct Alternative {
    int32_t rule;
    int64_t length, unknown;  // length of the known part; number of calls of unknown length
  };
  std::vector<Alternative> all;
  std::vector<std::vector<size_t>> callers(rules_.size());
  using Candidate = std::pair<int64_t, int32_t>;  // length, rule
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto offer = [&](const Alternative& a) {
    if (a.unknown == 0 && a.length < kNever) candidates.emplace(a.length, a.rule);
  };
  for (int32_t rule = 0; rule < rules(); ++rule) {
    for (const int32_t first : alternatives(rule)) {
      Alternative alternative{rule, 0, 0};
      for (int32_t at = first; symbol(at).kind != Symbol::end; ++at) {
        const auto index = static_cast<size_t>(symbol(at).index);
        if (symbol(at).kind == Symbol::rule) {
          callers[index].push_back(all.size());
          ++alternative.unknown;
        } else {
          alternative.length = sets_[index].any() ? alternative.length + 1 : kNever;
        }
        if (alternative.length >= kNever) break;
      }
      all.push_back(alternative);
      offer(alternative);
    }
  }
  shortest_.assign(rules_.size(), kNever);
  while (!candidates.empty()) {
    const auto [length, rule] = candidates.top();
    candidates.pop();
    int64_t& shortest = shortest_[static_cast<size_t>(rule)];
    if (shortest < kNever) continue;
    shortest = length;
    for (const size_t caller : callers[static_cast<size_t>(rule)]) {
      Alternative& alternative = all[caller];
      alternative.length = std::min(kNever, alternative.length + length);
      --alternative.unknown;
      offer(alternative);
    }
  }
  rest_.assign(symbols_.size(), 0);
  for (size_t i = symbols_.size(); i-- > 0;) {
    if (symbols_[i].kind == Symbol::end) continue;
    const auto index = static_cast<size_t>(symbols_[i].index);
    const int64_t shortest = symbols_[i].kind == Symbol::rule ? shortest_[index]
                             : sets_[index].any()             ? 1
                                                              : kNever;
    rest_[i] = std::min(kNever, shortest + rest_[i + 1]);
  }
}

template <class Use>
void Grammar::each_first_call(int32_t first, Use&& use) const {
  if (shortest_rest(first) >= kNever) return;
  for (int32_t at = first; symbol(at).kind == Symbol::rule; ++at) {
    use(symbol(at).index, symbol(at + 1).kind == Symbol::end);
    if (shortest(symbol(at).index) > 0) return;
  }
}

Grammar::Calls Grammar::first_calls() const {
  Calls calls;
  for (const std::vector<int32_t>& alternatives : rules_) {
    calls.begins.push_back(calls.rules.size());
    for (const int32_t first : alternatives)
      each_first_call(first, [&](int32_t rule, bool) { calls.rules.push_back(rule); });
  }
  calls.begins.push_back(calls.rules.size());
  return calls;
}

// Finds strongly connected components (Tarjan 1972) with an explicit stack, since a schema can
// produce long chains of rules.
void Grammar::order_rules() {
  const Calls calls = first_calls();
  struct Visit {
    size_t rule, next;
  };
  std::vector<Visit> path;
  std::vector<size_t> open, entered(rules_.size(), 0), low(rules_.size(), 0);
  size_t entries = 0;
  int32_t components = 0;
  order_.assign(rules_.size(), -1);
  const auto enter = [&](size_t rule) {
    entered[rule] = low[rule] = ++entries;
    open.push_back(rule);
    path.push_back({rule, calls.begins[rule]});
  };
  for (size_t root = 0; root < rules_.size(); ++root) {
    if (entered[root] == 0) enter(root);
    while (!path.empty()) {
      const size_t rule = path.back().rule;
      if (path.back().next < calls.begins[rule + 1]) {
        const auto called = static_cast<size_t>(calls.rules[path.back().next++]);
        if (entered[called] == 0)
          enter(called);
        else if (order_[called] < 0)
          low[rule] = std::min(low[rule], entered[called]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back().rule] = std::min(low[path.back().rule], low[rule]);
      if (low[rule] != entered[rule]) continue;
      while (order_[rule] < 0) {
        order_[open.back()] = components;
        open.pop_back();
      }
      ++components;
    }
  }
}

void Grammar::check_recursion() const {
  for (int32_t rule = 0; rule < rules(); ++rule) {
    for (const int32_t first : alternatives(rule)) {
      each_first_call(first, [&](int32_t called, bool last) {
        check(last || order(called) != order(rule),
              "grammar: a rule begins with itself; expected a byte first");
      });
    }
  }
}

void Grammar::classify_bytes() {
  class_of_.fill(0);
  classes_ = 1;
  for (const Bytes& set : sets_) {
    if (classes_ == class_of_.size()) break;
    std::array<int, 512> parts;  // by class and whether the set has the byte
    parts.fill(-1);
    int found = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      int& part = parts[class_of_[byte] * size_t{2} + (set[byte] ? 1 : 0)];
      if (part < 0) part = found++;
      class_of_[byte] = static_cast<uint8_t>(part);
    }
    classes_ = static_cast<size_t>(found);
  }
  for (size_t byte = 256; byte-- > 0;)
    first_of_class_[class_of_[byte]] = static_cast<uint8_t>(byte);
}

}  // namespace fovea::text
