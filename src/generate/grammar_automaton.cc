#include "generate/grammar_automaton.h"

#include <algorithm>

namespace fovea {

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const Grammar> grammar, int32_t root)
    : grammar_(std::move(grammar)), stacks_{{0, kEmpty, 0}} {
  std::vector<int32_t> stacks;
  expand_rule(root, kEmpty, stacks);
  start_ = state_of(std::move(stacks));
}

int32_t GrammarAutomaton::push(int32_t position, int32_t below) {
  const auto [found, added] =
      stack_numbers_.emplace(std::pair(position, below), static_cast<int32_t>(stacks_.size()));
  if (added) {
    const int64_t need =
        grammar_->shortest_rest(position) + stacks_[static_cast<size_t>(below)].need;
    stacks_.push_back({position, below, need});
  }
  return found->second;
}

void GrammarAutomaton::expand(int32_t position, int32_t below, std::vector<int32_t>& out) {
  const Grammar::Symbol& symbol = grammar_->symbol(position);
  switch (symbol.kind) {
    case Grammar::Symbol::bytes: out.push_back(push(position, below)); return;
    case Grammar::Symbol::end:
      if (below == kEmpty) {
        out.push_back(kEmpty);
      } else {
        const Stack stack = stacks_[static_cast<size_t>(below)];
        expand(stack.position, stack.below, out);
      }
      return;
    case Grammar::Symbol::rule: {
      // Nothing is left to do behind the last symbol: then the rule stands in for its caller.
      const bool last = grammar_->symbol(position + 1).kind == Grammar::Symbol::end;
      expand_rule(symbol.index, last ? below : push(position + 1, below), out);
    }
  }
}

void GrammarAutomaton::expand_rule(int32_t rule, int32_t below, std::vector<int32_t>& out) {
  if (!expanded_.emplace(rule, below).second) return;
  for (const int32_t first : grammar_->alternatives(rule)) {
    if (grammar_->shortest_rest(first) < Grammar::kNever) expand(first, below, out);
  }
}

int32_t GrammarAutomaton::compute_step(int32_t state, uint8_t byte) {
  expanded_.clear();
  std::vector<int32_t> next;
  const std::vector<int32_t> stacks = states_[static_cast<size_t>(state)];
  for (const int32_t number : stacks) {
    if (number == kEmpty) continue;
    const Stack stack = stacks_[static_cast<size_t>(number)];
    if (grammar_->allows(grammar_->symbol(stack.position).index, byte)) {
      expand(stack.position + 1, stack.below, next);
    }
  }
  const int32_t number = next.empty() ? kDead : state_of(std::move(next));
  steps_[static_cast<size_t>(state)][byte] = number;
  return number;
}

int32_t GrammarAutomaton::state_of(std::vector<int32_t> stacks) {
  std::sort(stacks.begin(), stacks.end());
  stacks.erase(std::unique(stacks.begin(), stacks.end()), stacks.end());
  const auto [found, added] = state_numbers_.emplace(stacks, static_cast<int32_t>(states_.size()));
  if (added) {
    int64_t need = Grammar::kNever;
    for (const int32_t stack : stacks) {
      need = std::min(need, stacks_[static_cast<size_t>(stack)].need);
    }
    states_.push_back(std::move(stacks));
    steps_.emplace_back();
    steps_.back().fill(kUnknown);
    needs_.push_back(need);
  }
  return found->second;
}

}  // namespace fovea
