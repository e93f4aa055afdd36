#pragma once

// The model of an index, which computes one dense or one sparse vector for each passage.

#include <string>
#include <variant>

#include "embed/modules.h"
#include "fovea/retrieval.h"
#include "search/posting_lists.h"

namespace fovea {

class PassageModel {
 public:
  // Throws Unsupported if the model computes several vectors for each text, and the errors of
  // Embedder::open().
  static PassageModel open(const std::string& folder);

  bool sparse() const { return std::holds_alternative<SparseEmbedder>(model_); }
  // Throws std::bad_variant_access for the other kind.
  const Embedder& dense_model() const { return std::get<Embedder>(model_); }
  const SparseEmbedder& sparse_model() const { return std::get<SparseEmbedder>(model_); }

  int64_t width() const;
  int64_t max_tokens() const;
  Similarity similarity() const;
  const Tokenizer& tokenizer() const;
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

 private:
  explicit PassageModel(std::variant<Embedder, SparseEmbedder> model) : model_(std::move(model)) {}
  std::variant<Embedder, SparseEmbedder> model_;
};

}  // namespace fovea
