#pragma once

// Models that do not compute one dense vector for each text, but sparse vectors over the
// vocabulary, or one vector for each token.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fovea/core/array.h"
#include "fovea/infer/embed.h"
#include "fovea/model/model.h"

namespace fovea::infer {

// What a text is in a search. Some models treat queries differently.
enum class TextRole { document, query };
// Returns the name of the prompt for texts of this role, by the names of sentence-transformers;
// empty if there is none.
std::string prompt_name_for(const std::map<std::string, std::string>& prompts, TextRole role);

// Vectors most of whose elements are 0: compressed sparse rows.
struct SparseVectors {
  int64_t count = 0, width = 0;
  std::vector<int64_t> starts = {0};  // [count + 1]: row i is [starts[i], starts[i + 1])
  std::vector<int32_t> indices;       // of the elements other than 0, ascending in each row
  std::vector<float> values;          // of these elements
  std::vector<int64_t> tokens;        // number of tokens of each text
  std::vector<int64_t> cut;           // number of truncated tokens of each text
};

// Writes a safetensors file with the tensors `starts` (i64), `indices` (i32) and `values` (f32),
// and the width in its metadata. Throws Failed if it cannot be written.
void write_vectors(const SparseVectors& vectors, const std::string& path);

// Computes sparse vectors of texts, with one element for each token of the vocabulary (SPLADE:
// Formal et al. 2021, arXiv:2109.10086). A vector's bits do not depend on the other texts. Cheap to
// copy; copies share the weights. Safe to use from several threads.
class SparseEmbedder {
 public:
  // Opens a sentence-transformers directory of a sparse encoder, or a language model, of which the
  // weights are the maxima of log(1 + relu(logits)). Throws the errors of Embedder::open().
  static SparseEmbedder open(const std::string& folder,
                             model::WeightPrecision precision = model::WeightPrecision::stored,
                             const std::vector<model::AdapterUse>& adapters = {});

  // Returns one vector per text, of which only the `most` largest elements are kept; 0 = as many as
  // the model's files say. If the options name no prompt, that of the role is used. Throws the
  // errors of Embedder::embed(), and InvalidArgument if `dimensions` or `normalise` is set.
  SparseVectors embed(const std::vector<std::string>& texts, TextRole role = TextRole::document,
                      const EmbedOptions& options = {}, int64_t most = 0) const;

  int64_t width() const;  // elements of a vector: tokens of the vocabulary
  int64_t max_tokens() const;
  const std::string& similarity_name() const;  // dot, cosine, ...
  const std::map<std::string, std::string>& prompts() const;
  const text::Tokenizer& tokenizer() const;
  const std::vector<std::string>& warnings() const;  // see Model::warnings()
  uint64_t fingerprint() const;                      // see Embedder::fingerprint()
  // The spec of the Transformer; null if the weights are those of a table.
  const model::Spec* spec() const;

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit SparseEmbedder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Several vectors for each text.
struct MultiVectors {
  int64_t count = 0, width = 0;
  std::vector<int64_t> starts = {0};  // [count + 1]: text i has the rows [starts[i], starts[i + 1])
  std::vector<float> values;          // [starts[count], width]
  std::vector<int64_t> tokens;        // number of tokens of each text
  std::vector<int64_t> cut;           // number of truncated tokens of each text

  // The rows of one text: [rows, width].
  ArrayView rows(int64_t text) const {
    const auto i = static_cast<size_t>(text);
    return {values.data() + starts[i] * width, {starts[i + 1] - starts[i], width}, DType::f32};
  }
};

// Writes a safetensors file with the tensors `starts` (i64) and `values` (f32 [rows, width]).
// Throws Failed if it cannot be written.
void write_vectors(const MultiVectors& vectors, const std::string& path);

// Computes a vector for each token of a text, for late interaction (ColBERT: Khattab and Zaharia
// 2020, arXiv:2004.12832). A text's bits do not depend on the other texts. Cheap to copy; copies
// share the weights. Safe to use from several threads.
class MultiVectorEmbedder {
 public:
  // Opens a directory of a late interaction model: of sentence-transformers, of PyLate, or of the
  // original ColBERT. Throws the errors of Embedder::open().
  static MultiVectorEmbedder open(const std::string& folder,
                                  model::WeightPrecision precision = model::WeightPrecision::stored,
                                  const std::vector<model::AdapterUse>& adapters = {});

  // Returns the vectors of each text, in the order of its tokens; tokens that the model skips have
  // none. See SparseEmbedder::embed().
  MultiVectors embed(const std::vector<std::string>& texts, TextRole role = TextRole::document,
                     const EmbedOptions& options = {}) const;
  // Returns the similarity of a query's and a text's vectors: the sum over the query's vectors of
  // their greatest dot product with a vector of the text (paper, equation 3), divided by their
  // number if the model says so. Throws InvalidArgument if the widths differ.
  float similarity(const ArrayView& query, const ArrayView& text) const;
  // Returns the similarity of each text's vectors to those of one query.
  std::vector<float> scores(const MultiVectors& query, const MultiVectors& texts) const;
  // Returns the similarity of each text to the query. Of the options, the prompt is not used.
  std::vector<float> score(const std::string& query, const std::vector<std::string>& texts,
                           const EmbedOptions& options = {}) const;

  // Returns the vectors of embed({text}, role) at their tokens, of unit length. Tokens of a prompt,
  // special tokens and those that extend a query have an empty byte range.
  std::vector<EmbeddedToken> embed_tokens(const std::string& text, TextRole role) const;

  int64_t width() const;
  int64_t max_tokens(TextRole role) const;
  bool averages() const;  // similarities are divided by the number of the query's vectors
  const std::map<std::string, std::string>& prompts() const;
  const text::Tokenizer& tokenizer() const;
  const std::vector<std::string>& warnings() const;  // see Model::warnings()
  uint64_t fingerprint() const;                      // see Embedder::fingerprint()
  const model::Spec& spec() const;

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit MultiVectorEmbedder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea::infer
