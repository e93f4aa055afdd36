#pragma once

// The model of an index, which computes for each passage a dense vector, a sparse vector, or a
// vector for each of its tokens.

#include <string>
#include <variant>

#include "embed/modules.h"
#include "embed/vector_kind.h"
#include "fovea/infer/retrieval.h"
#include "search/posting_lists.h"

namespace fovea::infer {

class PassageModel {
 public:
  // The alternatives are in the order of VectorKind.
  using AnyEmbedder = std::variant<Embedder, SparseEmbedder, MultiVectorEmbedder>;
  // Throws Unsupported if the model compares sparse vectors by a distance.
  explicit PassageModel(AnyEmbedder model);
  // Throws also the errors of Embedder::open(). `kind` chooses the vectors of a model whose files
  // say that it computes dense ones.
  static PassageModel open(const std::string& folder, VectorKind kind = VectorKind::dense);

  VectorKind kind() const { return static_cast<VectorKind>(model_.index()); }
  // Throw std::bad_variant_access for the other kinds.
  const Embedder& dense_model() const { return std::get<Embedder>(model_); }
  const SparseEmbedder& sparse_model() const { return std::get<SparseEmbedder>(model_); }
  const MultiVectorEmbedder& token_model() const { return std::get<MultiVectorEmbedder>(model_); }

  int64_t width() const;
  int64_t max_tokens() const;
  Similarity similarity() const;
  const text::Tokenizer& tokenizer() const;
  const std::vector<std::string>& warnings() const;
  std::string fingerprint() const;  // of everything that affects the vectors

  // The options for texts of a role: the model's prompt, and vectors of unit length if the model
  // compares vectors by their cosine.
  EmbedOptions options_for(TextRole role) const;
  // Return vectors of texts, of unit length if the model compares them by their cosine.
  Embeddings dense_vectors(const std::vector<std::string>& texts, TextRole role,
                           EmbedOptions options) const;
  SparseVectors sparse_vectors(const std::vector<std::string>& texts, TextRole role,
                               const EmbedOptions& options) const;
  // Returns the vectors of the text's tokens, of unit length, and their spans in it.
  std::vector<EmbeddedToken> embedded_tokens(const std::string& text, TextRole role) const;

 private:
  AnyEmbedder model_;
};

}  // namespace fovea::infer
