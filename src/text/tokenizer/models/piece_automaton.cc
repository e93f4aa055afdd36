#include "tokenizer/models/piece_automaton.h"

#include <algorithm>
#include <numeric>

namespace fovea::text {
namespace {

struct Edge {
  uint32_t from, to;
  char byte;
};

// Returns the edges, ordered by the depth of their target nodes.
std::vector<Edge> edges_by_depth(const PieceTrie& trie) {
  std::vector<Edge> edges(trie.nodes() - 1);  // by target node; no edge leads to the root
  trie.for_each_edge(
      [&](uint32_t from, char byte, uint32_t to) { edges[to - 1] = {from, to, byte}; });
  std::vector<uint32_t> depths(trie.nodes());  // a node has a larger number than its parent
  uint32_t deepest = 0;
  for (const Edge& edge : edges)
    deepest = std::max(deepest, depths[edge.to] = depths[edge.from] + 1);
  std::vector<size_t> offsets(deepest + 2);
  for (const Edge& edge : edges) ++offsets[depths[edge.to] + 1];
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  std::vector<Edge> sorted(edges.size());
  for (const Edge& edge : edges) sorted[offsets[depths[edge.to]]++] = edge;
  return sorted;
}

}  // namespace

PieceAutomaton::PieceAutomaton(const std::vector<std::string>& texts)
    : trie_(texts), suffix_(trie_.nodes(), root), shorter_(trie_.nodes(), root) {
  lengths_.reserve(texts.size());
  for (const std::string& text : texts) lengths_.push_back(static_cast<uint32_t>(text.size()));
  for (const Edge& edge : edges_by_depth(trie_)) {
    if (edge.from != root) suffix_[edge.to] = step(suffix_[edge.from], edge.byte);
    shorter_[edge.to] = longest(suffix_[edge.to]);
  }
}

}  // namespace fovea::text
