#pragma once

// Models that compute sparse vectors over the vocabulary.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "embed/sentence_model.h"
#include "fovea/infer/retrieval.h"

namespace fovea::infer {

// The elements of a sparse vector other than 0, in ascending order of their indices.
struct SparseRow {
  std::vector<int32_t> indices;
  std::vector<float> values;
};

// Converts the logits x [T, V] of a text's tokens to weights:
//   w_v = max over t of log(1 + relu(x_tv))   (SPLADE v2: Formal et al. 2021, arXiv:2109.10086)
// `sum` replaces the maximum by the sum (SPLADE: Formal et al. 2021, arXiv:2107.05720).
// `twice` applies log(1 + x) once more.
struct SpladePooling {
  bool sum = false, twice = false;
};

// Weights of the tokens of a text, w_v = max over the places of v of relu(w . h_t + b), by a linear
// layer that reads the states h (BGE-M3: Chen et al. 2024, arXiv:2402.03216, 3.2).
struct TokenScores {
  model::Linear linear;       // [1, C]
  std::set<int32_t> skipped;  // special tokens, which have no weight
};

// A language model whose logits are pooled, or a model whose tokens have weights.
struct LogitEncoder {
  model::Transformer transformer;
  TextFormat format;
  SpladePooling pooling;
  model::Origin origin;
  std::optional<TokenScores> scores = {};  // instead of the logits

  // Returns the vectors of the texts of a batch. Throws Failed if a logit is not finite, with
  // name(b) for the text.
  std::vector<SparseRow> rows(const TokenBatch& batch,
                              const std::function<std::string(size_t)>& name) const;

 private:
  std::vector<SparseRow> rows_of_scores(const TokenBatch& batch, const Tensor& states,
                                        const std::function<std::string(size_t)>& name) const;
};

// Returns the vectors of the texts of a batch, with all of their elements, f32 [B, V], for poolings
// by the maximum. Differentiable; the gradient of an element passes through the token that has the
// maximum. `recompute`: as in Pass.
Tensor dense_rows(const model::Transformer& transformer, const SpladePooling& pooling,
                  const TokenBatch& batch, int64_t recompute = 0);

// The weight of each token; the vector of a text has those of the tokens that occur in it.
struct TokenWeights {
  std::vector<float> weights;  // [V]
  TextFormat format;
  uint64_t hash = 0;  // of its files

  SparseRow row(const TokenizedText& text) const;
};

// One of the two parts may be missing. If both are present, the table is for queries.
struct SparseModel : NamedPrompts {
  std::optional<LogitEncoder> encoder;
  std::optional<TokenWeights> table;
  std::string transformer_folder;  // of the encoder; empty if there is none
  int64_t width = 0;
  int64_t most_active = 0;  // maximum number of elements other than 0 in a vector; 0 = unlimited
  Similarity similarity = Similarity::dot;
  uint64_t hash = 0;  // of the modules after the Transformer
  std::vector<std::string> warnings;

  static SparseModel open(const std::string& folder, model::Weights weights,
                          const model::Packing& packing = {},
                          const std::vector<model::AdapterUse>& adapters = {});
  // Whether texts of this role use the table.
  bool uses_table(TextRole role) const { return table && (!encoder || role == TextRole::query); }
  const TextFormat& format(TextRole role) const {
    return uses_table(role) ? table->format : encoder->format;
  }
};

// Keeps the `most` largest values; of equal ones, those with the smaller index.
void keep_largest(SparseRow& row, int64_t most);

}  // namespace fovea::infer
