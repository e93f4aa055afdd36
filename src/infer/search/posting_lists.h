#pragma once

// An inverted index: for each term, the passages that contain it and its weight in them. The score
// of a passage is the dot product of its weights with those of the query, and the search is exact.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fovea/infer/retrieval.h"
#include "safetensors/safetensors.h"

namespace fovea::infer {

struct ScoredPassage {
  int64_t number;  // index of the passage
  float score;
};

// Returns at most `count` passages, sorted by descending score, then by number.
std::vector<ScoredPassage> best_of(std::vector<ScoredPassage> all, int64_t count);

struct TermWeight {
  int32_t term;
  float weight;
};

class PostingLists {
 public:
  // `passages`: a row for each passage, whose columns are the terms.
  explicit PostingLists(const SparseVectors& passages);
  // Reads the tensors of a file; `path` is its name in errors. Throws BadFile unless they are lists
  // of `terms` terms in `passages` passages.
  PostingLists(const SafeTensors& file, const std::string& path, int64_t terms, int64_t passages);

  std::map<std::string, Tensor> tensors() const;  // to write a file
  SparseVectors rows() const;                     // the argument of the constructor
  int64_t terms() const { return std::ssize(starts_) - 1; }

  // Returns the passages that contain a term of the query, ascending. Terms that no passage
  // contains are ignored.
  std::vector<ScoredPassage> matches(std::span<const TermWeight> query) const;

 private:
  int64_t passages_ = 0;
  std::vector<int64_t> starts_;   // [terms + 1]: term t has the entries [starts[t], starts[t + 1])
  std::vector<int32_t> numbers_;  // passages, ascending for each term
  std::vector<float> weights_;
};

}  // namespace fovea::infer
