#include "search/passage_model.h"

#include <cmath>

#include "base/error.h"
#include "base/hash.h"

namespace fovea::infer {
namespace {

void scale_rows_to_unit_length(SparseVectors& vectors) {
  for (size_t row = 0; row + 1 < vectors.starts.size(); ++row) {
    const auto begin = static_cast<size_t>(vectors.starts[row]),
               end = static_cast<size_t>(vectors.starts[row + 1]);
    double squares = 0;
    for (size_t i = begin; i < end; ++i) squares += double{vectors.values[i]} * vectors.values[i];
    for (size_t i = begin; i < end && squares > 0; ++i)
      vectors.values[i] = static_cast<float>(vectors.values[i] / std::sqrt(squares));
  }
}

}  // namespace

PassageModel::PassageModel(AnyEmbedder model) : model_(std::move(model)) {
  if (kind() == VectorKind::sparse && similarity() != Similarity::dot &&
      similarity() != Similarity::cosine)
    fail(ErrorKind::Unsupported, "sparse vectors are compared by {}; expected dot or cosine",
         name_of(similarity()));
}

PassageModel PassageModel::open(const std::string& folder, VectorKind kind) {
  const VectorKind own = vector_kind(folder);
  switch (own == VectorKind::dense ? kind : own) {
    case VectorKind::dense: return PassageModel(Embedder::open(folder));
    case VectorKind::sparse: return PassageModel(SparseEmbedder::open(folder));
    case VectorKind::multiple: break;
  }
  return PassageModel(MultiVectorEmbedder::open(folder));
}

int64_t PassageModel::width() const {
  return std::visit([](const auto& model) { return model.width(); }, model_);
}
int64_t PassageModel::max_tokens() const {
  if (kind() == VectorKind::multiple) return token_model().max_tokens(TextRole::document);
  return kind() == VectorKind::dense ? dense_model().max_tokens() : sparse_model().max_tokens();
}
Similarity PassageModel::similarity() const {
  if (kind() == VectorKind::multiple) return Similarity::dot;
  return *similarity_named(kind() == VectorKind::dense ? dense_model().similarity_name()
                                                       : sparse_model().similarity_name());
}
const text::Tokenizer& PassageModel::tokenizer() const {
  return std::visit([](const auto& model) -> const text::Tokenizer& { return model.tokenizer(); },
                    model_);
}
const std::vector<std::string>& PassageModel::warnings() const {
  return std::visit(
      [](const auto& model) -> const std::vector<std::string>& { return model.warnings(); },
      model_);
}
std::string PassageModel::fingerprint() const {
  return hash_text(std::visit([](const auto& model) { return model.fingerprint(); }, model_));
}

EmbedOptions PassageModel::options_for(TextRole role) const {
  EmbedOptions options;
  if (kind() == VectorKind::dense && similarity() == Similarity::cosine) options.normalise = true;
  options.prompt_name =
      std::visit([&](const auto& model) { return prompt_name_for(model.prompts(), role); }, model_);
  return options;
}

Embeddings PassageModel::dense_vectors(const std::vector<std::string>& texts, TextRole role,
                                       EmbedOptions options) const {
  const EmbedOptions own = options_for(role);
  options.prompt_name = own.prompt_name;
  options.normalise = own.normalise;
  return dense_model().embed(texts, options);
}

SparseVectors PassageModel::sparse_vectors(const std::vector<std::string>& texts, TextRole role,
                                           const EmbedOptions& options) const {
  SparseVectors vectors = sparse_model().embed(texts, role, options);
  if (similarity() == Similarity::cosine) scale_rows_to_unit_length(vectors);
  return vectors;
}

std::vector<EmbeddedToken> PassageModel::embedded_tokens(const std::string& text,
                                                         TextRole role) const {
  if (kind() == VectorKind::multiple) return token_model().embed_tokens(text, role);
  return dense_model().embed_tokens(text, options_for(role));
}

}  // namespace fovea::infer
