#pragma once

// The vectors of the tokens of all passages, for late interaction (ColBERT: Khattab and Zaharia
// 2020, arXiv:2004.12832). The search compares the query with every passage, so it is exact.

#include <map>
#include <string>
#include <vector>

#include "safetensors/safetensors.h"
#include "tensor/tensor.h"

namespace fovea::infer {

class PassageTokenVectors {
 public:
  // Each passage: f32 [tokens, width]; a passage may have no tokens.
  PassageTokenVectors(const std::vector<Tensor>& passages, int64_t width);
  // Reads the tensors of a file; `path` is its name in errors. Throws BadFile unless they are the
  // vectors of `passages` passages, of `width` elements. Borrows the file's mapping.
  PassageTokenVectors(const SafeTensors& file, const std::string& path, int64_t width,
                      int64_t passages);

  std::map<std::string, Tensor> tensors() const;  // to write a file
  Tensor rows(int64_t passage) const;             // f32 [tokens, width], a view

  // Returns the sum over the query's vectors, f32 [Q, width], of their greatest dot product with a
  // vector of the passage (paper, equation 3), for each passage; 0 for a passage without tokens.
  std::vector<float> sums(const Tensor& query) const;

 private:
  Tensor starts_;  // i64 [passages + 1]: passage i has the rows [starts[i], starts[i + 1])
  Tensor values_;  // f32 [starts[passages], width]
};

}  // namespace fovea::infer
