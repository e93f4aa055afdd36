#pragma once

// Compares queries with all documents, by dense vectors, sparse ones or those of tokens.

#include <string>
#include <vector>

#include "search/passage_model.h"
#include "tensor/tensor.h"

namespace fovea::infer {

class ExactSearch {
 public:
  // `options`: how the texts are embedded, except for the prompts, which are the model's.
  ExactSearch(const PassageModel& model, const std::vector<std::string>& queries,
              const EmbedOptions& options);

  // The similarities of each query and all documents, and the truncated documents.
  struct Similarities {
    std::vector<std::vector<float>> of_query;
    int64_t cut = 0;
  };
  // The similarity of a query and a document does not depend on the others.
  Similarities similarities(const std::vector<std::string>& documents,
                            const EmbedOptions& options) const;

 private:
  void compare_dense(const Embeddings& documents, Similarities& found) const;
  void compare_sparse(const SparseVectors& documents, Similarities& found) const;
  void compare_tokens(const MultiVectors& documents, Similarities& found) const;

  const PassageModel& model_;
  int64_t queries_ = 0;
  // One of the three.
  Embeddings dense_;
  SparseVectors sparse_;
  std::vector<MultiVectors> tokens_;
};

}  // namespace fovea::infer
