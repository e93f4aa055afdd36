#pragma once

// Searches in the dense vectors of all parts of an index.

#include <span>
#include <vector>

#include "search/index_contents.h"

namespace fovea::infer {

// Adds the passages of scored rows of a part.
void add_selected(std::span<const int32_t> numbers, const std::vector<ScoredPassage>& rows,
                  std::vector<ScoredPassage>& found);

// Compares the query with all selected passages.
std::vector<ScoredPassage> best_by_vectors(const IndexContents& index,
                                           const IndexContents::Selection& selection,
                                           std::span<const float> query, int64_t count);

// Searches in the graphs of the parts that have one, and compares the query with the others'
// passages. The similarities are those of best_by_vectors(). Throws InvalidArgument if no part has
// a graph.
std::vector<ScoredPassage> best_by_graphs(const IndexContents& index,
                                          const IndexContents::Selection& selection,
                                          std::span<const float> query, int64_t count,
                                          int64_t candidates);

}  // namespace fovea::infer
