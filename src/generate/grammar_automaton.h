#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "generate/grammar.h"

namespace fovea {

// Reads a grammar's words byte by byte. A pushdown automaton: a stack is where reading goes on in
// each rule that is open; a state is the set of all stacks that fit what was read. Both are
// numbered as they are met, so that reading a byte again is one look-up.
class GrammarAutomaton {
 public:
  static constexpr int32_t kDead = -1;

  GrammarAutomaton(std::shared_ptr<const Grammar> grammar, int32_t root);

  int32_t start() const { return start_; }
  int32_t step(int32_t state, uint8_t byte) {  // kDead where no word goes on so
    const int32_t next = steps_[static_cast<size_t>(state)][byte];
    return next != kUnknown ? next : compute_step(state, byte);
  }
  bool accepts(int32_t state) const { return needs_[static_cast<size_t>(state)] == 0; }
  // Bytes to the end of the shortest word.
  int64_t need(int32_t state) const { return needs_[static_cast<size_t>(state)]; }
  size_t states() const { return steps_.size(); }

 private:
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kEmpty = 0;  // the stack of a word that is read
  struct Stack {
    int32_t position, below;
    int64_t need;
  };

  int32_t compute_step(int32_t state, uint8_t byte);
  int32_t state_of(std::vector<int32_t> stacks);
  int32_t push(int32_t position, int32_t below);
  // Adds the stacks that read on from `position` over `below`, each with a set of bytes on top.
  void expand(int32_t position, int32_t below, std::vector<int32_t>& out);
  void expand_rule(int32_t rule, int32_t below, std::vector<int32_t>& out);

  std::shared_ptr<const Grammar> grammar_;
  std::vector<Stack> stacks_;
  std::map<std::pair<int32_t, int32_t>, int32_t> stack_numbers_;
  std::vector<std::vector<int32_t>> states_;
  std::map<std::vector<int32_t>, int32_t> state_numbers_;
  std::vector<std::array<int32_t, 256>> steps_;
  std::vector<int64_t> needs_;
  std::set<std::pair<int32_t, int32_t>> expanded_;  // of one step: rules that lead to themselves
  int32_t start_;
};

}  // namespace fovea
