#pragma once

// Parts that SparseEmbedder and MultiVectorEmbedder share.

#include <functional>
#include <string>
#include <vector>

#include "embed/multi_vector_model.h"
#include "embed/sparse_model.h"

namespace fovea::infer {

struct SparseEmbedder::Parts {
  SparseModel model;
};

struct MultiVectorEmbedder::Parts {
  MultiVectorModel model;
};

// Returns the prompt that the options select; if they select none, that of the role.
std::string prompt_for(const NamedPrompts& model, TextRole role, const EmbedOptions& options);
// Throws InvalidArgument if an option is out of range, or is one of dense vectors.
void check_retrieval_options(const EmbedOptions& options);

// The steps of embed(): the tokens of texts, the rows of a batch, and their vectors. name(b) names
// text b of a batch in errors.
std::vector<TokenizedText> read_texts(const SparseModel& model,
                                      const std::vector<std::string>& texts, TextRole role,
                                      const EmbedOptions& options);
std::vector<RoleTokens> read_texts(const MultiVectorModel& model,
                                   const std::vector<std::string>& texts, TextRole role,
                                   const EmbedOptions& options);
std::vector<Tensor> finite_rows(const MultiVectorModel& model, const TokenBatch& batch,
                                const std::vector<int64_t>& added, TextRole role,
                                const std::function<std::string(size_t)>& name);
struct TextLength {
  int64_t tokens, cut;  // of a text; tokens that truncation removed
};
std::vector<TextLength> lengths_of(const std::vector<TokenizedText>& texts);
// `most`: the number of weights to keep of each vector; 0 = the model's.
SparseVectors vectors_of(const SparseModel& model, std::vector<SparseRow> rows,
                         const std::vector<TextLength>& lengths, int64_t most = 0);
MultiVectors vectors_of(const MultiVectorModel& model, const std::vector<Tensor>& rows,
                        const std::vector<TextLength>& lengths);

}  // namespace fovea::infer
