#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "grammar/grammar.h"

namespace fovea::text {

// Reads the words of a grammar byte by byte: a pushdown automaton whose stacks form one graph (a
// graph-structured stack: Tomita 1985). A node is a set of edges; an edge is a position in the
// grammar where reading continues, and the node below, where reading continues after the end of the
// alternative. All calls of a rule in one step share a node, so the size of the graph depends on
// the number of bytes read, not on the number of ways to read them. A state is a node whose
// positions all precede a byte or the end of the word. Equal nodes share a number, so reading the
// same byte in the same state again is one lookup.
class GrammarAutomaton {
 public:
  static constexpr int32_t kDead = -1;
  // Maximum number of edges visited or stored, which take tenths of a second and tens of megabytes.
  static constexpr int64_t kMostWork = 4'000'000;

  GrammarAutomaton(std::shared_ptr<const Grammar> grammar, int32_t root);

  int32_t start() const { return start_; }
  int32_t step(int32_t state, uint8_t byte) {  // kDead if no word continues with this byte
    const size_t byte_class = grammar_->class_of(byte);
    const int32_t next = steps_[static_cast<size_t>(state) * classes_ + byte_class];
    return next != kUnknown ? next : compute_step(state, static_cast<uint8_t>(byte_class));
  }
  bool accepts(int32_t state) const { return need(state) == 0; }
  // Returns the number of bytes to the end of the shortest word.
  int64_t need(int32_t state) const { return node(states_[static_cast<size_t>(state)]).need; }

  // Adds to the allowed work, in edges, up to kMostWork; step() throws InvalidArgument if it needs
  // more.
  void allow(int64_t work) { work_left_ = std::min(kMostWork, work_left_ + work); }
  // Returns the state that equals a state of another automaton of the same grammar.
  int32_t adopt(const GrammarAutomaton& other, int32_t state);
  size_t bytes() const;  // approximate memory in bytes

 private:
  static constexpr int32_t kUnknown = -2, kNone = -1;
  static constexpr int32_t kDone = -1;   // instead of a position: the word is complete
  static constexpr int32_t kBottom = 0;  // the lowest node: no rule is open
  struct Edge {
    int32_t position, below;
    auto operator<=>(const Edge&) const = default;
  };
  struct Node {
    size_t first;  // index of the first edge
    int32_t edges;
    int32_t state = kNone;  // the number of the state, if the node is one
    int64_t need = 0;       // bytes to the end of the shortest word
  };
  struct Called {  // rules of the same order, in one step
    std::vector<Edge> edges = {};
    std::vector<int32_t> rules = {};
  };

  Node& node(int32_t number) { return nodes_[static_cast<size_t>(number)]; }
  const Node& node(int32_t number) const { return nodes_[static_cast<size_t>(number)]; }
  std::span<const Edge> edges(int32_t number) const {
    return {edges_.data() + node(number).first, static_cast<size_t>(node(number).edges)};
  }
  int32_t node_of(std::vector<Edge>& edges);
  int64_t need_of(const Edge& edge) const;
  int32_t compute_step(int32_t state, uint8_t byte_class);
  void begin_step();
  void follow(const Edge& edge);
  void follow_rest();
  void call(int32_t rule, const Edge& edge);
  void end_step();                   // finds all bytes that can be read next
  int32_t state_of(int32_t number);  // returns the state of a node
  void work(size_t amount);

  std::shared_ptr<const Grammar> grammar_;
  size_t classes_;
  std::vector<Edge> edges_;
  std::vector<Node> nodes_;
  std::unordered_multimap<size_t, int32_t> numbers_;  // node numbers by hash
  std::vector<int32_t> states_;                       // the nodes of the states
  std::vector<int32_t> steps_;                        // [states, classes]
  int64_t work_left_ = kMostWork;
  int32_t start_;

  // The state of the current step.
  int32_t step_ = 0;
  std::vector<int32_t> called_in_;  // by rule: the last step that called it
  std::unordered_set<uint64_t> followed_;
  std::vector<Edge> to_follow_, found_;
  std::map<int32_t, Called> called_;  // by the order of the rules
};

}  // namespace fovea::text
