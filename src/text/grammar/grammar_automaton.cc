#include "grammar/grammar_automaton.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"

namespace fovea::text {
namespace {

constexpr size_t kKeptBuckets = 1024;  // clearing more buckets takes longer than allocating anew

}  // namespace

GrammarAutomaton::GrammarAutomaton(std::shared_ptr<const Grammar> grammar, int32_t root)
    : grammar_(std::move(grammar)),
      classes_(grammar_->classes()),
      called_in_(static_cast<size_t>(grammar_->rules()), 0) {
  std::vector<Edge> done = {{kDone, kBottom}};
  node_of(done);
  begin_step();
  if (grammar_->shortest(root) < Grammar::kNever)
    called_[grammar_->order(root)] = {std::move(done), {root}};
  if (grammar_->shortest(root) == 0) follow({kDone, kBottom});
  end_step();
  start_ = state_of(node_of(found_));
}

void GrammarAutomaton::work(size_t amount) {
  work_left_ -= static_cast<int64_t>(amount);
  check(work_left_ >= 0,
        "schema: the text so far matches it in too many ways; expected fewer alternatives");
}

size_t GrammarAutomaton::bytes() const {
  constexpr size_t kOfNumber = 32;  // bytes of an entry of numbers_
  return edges_.size() * sizeof(Edge) + nodes_.size() * (sizeof(Node) + kOfNumber) +
         steps_.size() * sizeof(int32_t);
}

int64_t GrammarAutomaton::need_of(const Edge& edge) const {
  if (edge.position == kDone) return 0;
  return std::min(Grammar::kNever, grammar_->shortest_rest(edge.position) + node(edge.below).need);
}

// Sorts the edges, removes duplicates, and returns the node with these edges.
int32_t GrammarAutomaton::node_of(std::vector<Edge>& edges) {
  work(edges.size());
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  size_t hash = edges.size();
  for (const Edge& edge : edges) {
    for (const int32_t part : {edge.position, edge.below})
      hash = (hash ^ static_cast<uint32_t>(part)) * 0x9E3779B97F4A7C15u, hash ^= hash >> 32;
  }
  const auto [begin, end] = numbers_.equal_range(hash);
  for (auto known = begin; known != end; ++known) {
    if (std::ranges::equal(this->edges(known->second), edges)) return known->second;
  }
  int64_t need = Grammar::kNever;
  for (const Edge& edge : edges) need = std::min(need, need_of(edge));
  const auto number = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({edges_.size(), static_cast<int32_t>(edges.size()), kNone, need});
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  numbers_.emplace(hash, number);
  return number;
}

int32_t GrammarAutomaton::compute_step(int32_t state, uint8_t byte_class) {
  begin_step();
  const int32_t from = states_[static_cast<size_t>(state)];
  work(1 + edges(from).size() / 8);  // visiting an edge costs little
  for (const Edge& edge : edges(from)) {
    if (edge.position == kDone) continue;
    if (grammar_->allows(grammar_->symbol(edge.position).index, byte_class))
      follow({edge.position + 1, edge.below});
  }
  end_step();
  const int32_t next = found_.empty() ? kDead : state_of(node_of(found_));
  steps_[static_cast<size_t>(state) * classes_ + byte_class] = next;
  return next;
}

void GrammarAutomaton::begin_step() {
  ++step_;
  if (followed_.bucket_count() > kKeptBuckets) followed_ = {};
  followed_.clear();
  to_follow_.clear();
  found_.clear();
  called_.clear();
}

void GrammarAutomaton::follow(const Edge& edge) {
  work(1);
  const auto key = static_cast<uint64_t>(static_cast<uint32_t>(edge.position)) << 32 |
                   static_cast<uint32_t>(edge.below);
  if (followed_.insert(key).second) to_follow_.push_back(edge);
}

// Follows edges to the next bytes: collects edges before a byte, continues at the node below after
// the end of an alternative, and calls rules.
void GrammarAutomaton::follow_rest() {
  while (!to_follow_.empty()) {
    const Edge edge = to_follow_.back();
    to_follow_.pop_back();
    if (edge.position == kDone) {
      found_.push_back(edge);
      continue;
    }
    const Grammar::Symbol& symbol = grammar_->symbol(edge.position);
    switch (symbol.kind) {
      case Grammar::Symbol::bytes: found_.push_back(edge); break;
      case Grammar::Symbol::end:
        for (const Edge& next : edges(edge.below)) follow(next);
        break;
      case Grammar::Symbol::rule:
        call(symbol.index, edge);
        // Also continues after a rule that can match the empty string: a caller that is added later
        // in this step would miss its completion (Aycock and Horspool 2002).
        if (grammar_->shortest(symbol.index) == 0) follow({edge.position + 1, edge.below});
    }
  }
}

void GrammarAutomaton::call(int32_t rule, const Edge& edge) {
  Called& called = called_[grammar_->order(rule)];
  if (std::exchange(called_in_[static_cast<size_t>(rule)], step_) != step_)
    called.rules.push_back(rule);
  // A rule that is the last symbol replaces its caller, since nothing of the caller remains to be
  // read.
  if (grammar_->symbol(edge.position + 1).kind != Grammar::Symbol::end) {
    called.edges.push_back({edge.position + 1, edge.below});
    return;
  }
  const std::span<const Edge> below = edges(edge.below);
  work(below.size());
  called.edges.insert(called.edges.end(), below.begin(), below.end());
}

// Rules start in descending order, so that all calls of a rule are known before it starts.
void GrammarAutomaton::end_step() {
  follow_rest();
  while (!called_.empty()) {
    const auto last = std::prev(called_.end());
    const int32_t below = node_of(last->second.edges);
    // Rules of the same order may call each other, which adds them to this list; all of them share
    // the node below.
    size_t next = 0;
    while (next < last->second.rules.size()) {
      for (const int32_t first : grammar_->alternatives(last->second.rules[next++])) {
        if (grammar_->shortest_rest(first) < Grammar::kNever) follow({first, below});
      }
      follow_rest();
    }
    called_.erase(last);
  }
}

int32_t GrammarAutomaton::state_of(int32_t number) {
  int32_t& state = node(number).state;
  if (state == kNone) {
    work(classes_);
    state = static_cast<int32_t>(states_.size());
    states_.push_back(number);
    steps_.resize(steps_.size() + classes_, kUnknown);
  }
  return state;
}

int32_t GrammarAutomaton::adopt(const GrammarAutomaton& other, int32_t state) {
  const int32_t top = other.states_[static_cast<size_t>(state)];
  // Edges lead to nodes with lower numbers, except that of the bottom node, which leads back to it.
  std::set<int32_t> reached = {top};
  for (auto at = reached.rbegin(); at != reached.rend(); ++at)
    for (const Edge& edge : other.edges(*at)) reached.insert(edge.below);
  std::unordered_map<int32_t, int32_t> numbers = {{kBottom, kBottom}};
  for (const int32_t number : reached) {
    const std::span<const Edge> theirs = other.edges(number);
    std::vector<Edge> edges(theirs.begin(), theirs.end());
    for (Edge& edge : edges) edge.below = numbers.at(edge.below);
    numbers[number] = node_of(edges);
  }
  return state_of(numbers.at(top));
}

}  // namespace fovea::text
