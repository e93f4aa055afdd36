#pragma once

// Late interaction models: a vector for each token of a text, with the settings of queries and of
// documents (ColBERT: Khattab and Zaharia 2020, arXiv:2004.12832).

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "embed/sentence_model.h"
#include "fovea/infer/retrieval.h"

namespace fovea::infer {

// Extends short queries to `length` tokens by copies of a token, whose vectors are scored too.
struct QueryExpansion {
  int64_t length = 0;
  bool fixed = true;      // longer queries are truncated to `length`
  bool attended = false;  // the other tokens attend to the copies
  int32_t token = 0;
};

// The tokens of a text; the last `added` tokens are those of the expansion.
struct RoleTokens {
  TokenizedText text;
  int64_t added = 0;
};
inline int64_t length_of(const RoleTokens& tokens) { return length_of(tokens.text); }

struct MultiVectorModel : NamedPrompts {
  model::Transformer transformer;
  TextFormat format;
  std::string transformer_folder;
  model::Origin origin = {};
  std::vector<VectorModule> after = {};  // modules for the vectors of tokens, in order
  int64_t width = 0;
  std::optional<QueryExpansion> expansion = {};
  int64_t query_length = 0, document_length = 0;  // maximum tokens of a text of each role
  std::set<int32_t> skipped = {};                 // tokens without vectors
  bool skip_in_queries = false, skip_in_documents = true;
  bool mean = false;     // similarities are means over the query's vectors, not sums
  bool inserts = false;  // prompts may begin with the text of any token, which is inserted
  uint64_t hash = 0;     // of the modules after the Transformer
  std::vector<std::string> warnings = {};

  static MultiVectorModel open(const std::string& folder, model::Weights weights,
                               const model::Packing& packing = {},
                               const std::vector<model::AdapterUse>& adapters = {});
  // Returns a new model of the Transformer in a directory, with a random projection to `width`
  // elements and PyLate's settings: queries are extended to 32 tokens, documents have at most 180,
  // and punctuation has no vectors. [unused0] and [unused1] mark queries and documents, if the
  // tokenizer has them.
  static MultiVectorModel create(const std::string& folder, int64_t width, uint64_t seed,
                                 model::Weights weights, const model::Packing& packing = {});

  // Returns whether a token has a vector.
  bool scored(int32_t id, TextRole role) const {
    return !(role == TextRole::query ? skip_in_queries : skip_in_documents) ||
           !skipped.contains(id);
  }
  RoleTokens tokens(const std::string& prompt, const std::string& text, TextRole role) const;
  // Returns the byte range in `text` of each token that has a vector; tokens of the prompt, special
  // tokens and those of the expansion have empty ranges.
  std::vector<text::Offsets> offsets(const std::string& prompt, const std::string& text,
                                     TextRole role) const;
  int64_t most_tokens(TextRole role) const {
    return role == TextRole::query ? query_length : document_length;
  }
  // Returns the number of vectors of a text.
  int64_t vectors_of(const TokenizedText& text, TextRole role) const;
  // Returns the vectors of all texts of a batch by a Transformer, which may be another one than the
  // model's, one text after the other: [rows, width]; added[b] is the number of tokens that
  // expansion added to text b. Differentiable. `recompute`: as in Pass.
  Tensor all_rows(const model::Transformer& by, const TokenBatch& batch,
                  const std::vector<int64_t>& added, TextRole role, int64_t recompute = 0) const;
  // Returns the vectors of each text of a batch, [rows, width], on the CPU.
  std::vector<Tensor> rows(const TokenBatch& batch, const std::vector<int64_t>& added,
                           TextRole role) const;
};

// Returns the sum over the query's vectors of their greatest dot product with a vector of the text
// (paper, equation 3); 0 if the text has none.   query [Q, C], text [D, C]
float largest_similarity(const Tensor& query, const Tensor& text);

}  // namespace fovea::infer
