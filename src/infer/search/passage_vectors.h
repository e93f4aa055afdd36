#pragma once

// The vectors of the rows of a part while it is made: computed by a model, or copied from an index.

#include <functional>
#include <string>
#include <vector>

#include "search/index_contents.h"
#include "search/passage_model.h"

namespace fovea {
class Communicator;
}

namespace fovea::infer {

class PassageVectors {
 public:
  PassageVectors(const IndexSettings& settings, int64_t rows);

  // The bytes of a vector are those of compute_vectors().
  void set(int64_t row, const std::string& bytes);
  void set(int64_t row, SparseVectors vector) {
    sparse_[static_cast<size_t>(row)] = std::move(vector);
  }
  void set(int64_t row, const Tensor& tokens) { tokens_[static_cast<size_t>(row)] = tokens; }
  DenseVectors& dense() { return dense_; }
  IndexedVectors finish() const;

 private:
  VectorKind kind_;
  int64_t width_;
  // One of the three.
  DenseVectors dense_;
  std::vector<SparseVectors> sparse_;  // one row for each
  std::vector<Tensor> tokens_;         // f32 [tokens, width] for each
};

// The vectors of an opened index, from which those of other parts are copied.
class StoredVectors {
 public:
  explicit StoredVectors(const IndexContents& index);
  void copy(int64_t part, int64_t row, PassageVectors& to, int64_t to_row) const;

 private:
  const IndexContents& index_;
  std::vector<SparseVectors> sparse_;  // of each part
};

// Texts whose vectors are computed together, and where they come from.
struct TextBlock {
  std::vector<std::string> texts, names;
};

// The vectors of the texts of a block, as bytes: a dense vector, the indices and the values of a
// sparse one, or those of all tokens. Counts the tokens of each text that were truncated.
struct BlockVectors {
  std::vector<std::string> bytes;
  std::vector<int64_t> cut;
};

// Computes blocks, one on each rank if `ranks` is given. Collective; the blocks are those of rank
// 0, and none end the work of the others. Returns the results of all blocks.
std::vector<BlockVectors> compute_vectors(const PassageModel& model, Communicator* ranks,
                                          const std::vector<TextBlock>& blocks);

}  // namespace fovea::infer
