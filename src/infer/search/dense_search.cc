#include "search/dense_search.h"

#include <algorithm>

#include "base/fields.h"

namespace fovea::infer {
namespace {

using Selected = IndexContents::Selection;

// The search that compares the query with all rows of the parts for which `include` holds.
template <class Include>
DenseSearch dense_search(const IndexContents& index, const Selected& selection,
                         std::span<const float> query, const Include& include) {
  std::vector<DensePart> parts;
  for (int64_t p = 0; p < index.parts(); ++p)
    if (include(p)) parts.push_back({&index.part(p).dense(), selection.of(p)});
  return {query, index.settings().similarity, std::move(parts)};
}

}  // namespace

void add_selected(std::span<const int32_t> numbers, const std::vector<ScoredPassage>& rows,
                  std::vector<ScoredPassage>& found) {
  for (const auto& [row, score] : rows)
    if (const int32_t number = numbers[static_cast<size_t>(row)]; number >= 0)
      found.push_back({number, score});
}

std::vector<ScoredPassage> best_by_vectors(const IndexContents& index, const Selected& selection,
                                           std::span<const float> query, int64_t count) {
  return dense_search(index, selection, query, [](int64_t) { return true; }).best(count);
}

std::vector<ScoredPassage> best_by_graphs(const IndexContents& index, const Selected& selection,
                                          std::span<const float> query, int64_t count,
                                          int64_t candidates) {
  // A graph also finds rows that are no longer searched.
  const auto unsearched = [&](int64_t p) {
    return std::ranges::count(selection.of(p), int32_t{-1});
  };
  bool has_graph = false;
  std::vector<char> uses_graph;
  for (int64_t p = 0; p < index.parts(); ++p) {
    const bool of_part = index.part(p).graph() != nullptr;
    has_graph = has_graph || of_part;
    uses_graph.push_back(of_part && unsearched(p) <= count + candidates);
  }
  check_field(has_graph, "graph_candidates",
              "{}: the index has no graph; expected an index built with `graph`", candidates);
  const DenseSearch others = dense_search(
      index, selection, query, [&](int64_t p) { return uses_graph[static_cast<size_t>(p)] == 0; });
  std::vector<ScoredPassage> found = others.best(count);
  for (int64_t p = 0; p < index.parts(); ++p) {
    if (uses_graph[static_cast<size_t>(p)] == 0) continue;
    std::vector<ScoredPassage> rows;
    for (const auto& [row, similarity] :
         index.part(p).graph()->nearest(query, count + unsearched(p), candidates))
      rows.push_back({row, others.similarity(index.part(p).dense(), row)});
    add_selected(selection.of(p), rows, found);
  }
  return best_of(std::move(found), count);
}

}  // namespace fovea::infer
