#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fovea/core/array.h"
#include "fovea/infer/metrics.h"
#include "fovea/model/model.h"

namespace fovea::infer {

struct EmbedOptions {
  // The prompt prepended to each text: the name of one of the model's prompts ("query", "document",
  // ...), or any text, which takes precedence. Without both: the model's default prompt, if any.
  std::string prompt_name;
  std::optional<std::string> prompt;
  // Keep only the first `dimensions` elements of each vector, for models trained for this (Kusupati
  // et al. 2022); 0 = all.
  int64_t dimensions = 0;
  // Normalise vectors, after truncation, to unit length. Unset: only if the model does. False is
  // refused for whole vectors that the model itself normalises.
  std::optional<bool> normalise;
  // Truncate texts that exceed the model's limit. If false, such a text is an error.
  bool truncate = true;
  int64_t batch_tokens = 0;  // maximum tokens per forward pass; 0 = a fast default
  // Returns the name of the text with this index, for errors; unset: "text 1", ...
  std::function<std::string(size_t)> name_of_text;
  // Called before each text is tokenised, from several threads. If it returns true, the call throws
  // Failed.
  std::function<bool()> stop;
};
void visit(EmbedOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct Embeddings {
  int64_t count = 0, width = 0;
  std::vector<float> values;    // [count, width], in the order of the texts
  std::vector<int64_t> tokens;  // number of tokens of each text, with prompt and special tokens
  std::vector<int64_t> cut;     // number of truncated tokens of each text

  ArrayView view() const { return {values.data(), {count, width}, DType::f32}; }  // of `values`
};

// One token of a text: its byte range [begin, end) and its unit-length vector [C], where C is the
// width of the hidden states. Special tokens and tokens of a prompt have an empty byte range.
struct EmbeddedToken {
  size_t begin, end;
  std::vector<float> vector;
};

// Computes vectors of texts; texts of similar meaning have vectors of similar direction (Reimers
// and Gurevych 2019). A vector's bits do not depend on the other texts in the batch. Cheap to copy;
// copies share the weights. Safe to use from several threads. References that its functions return
// are valid as long as a copy exists.
class Embedder {
 public:
  // Opens a sentence-transformers directory, or a Hugging Face directory of an encoder or decoder.
  // Without modules.json, the vector is the mean over the tokens. Throws BadFile if a file is
  // damaged or inconsistent, Unsupported if the model is not supported. `adapters`: see
  // Model::open().
  static Embedder open(const std::string& folder,
                       model::WeightPrecision precision = model::WeightPrecision::stored,
                       const std::vector<model::AdapterUse>& adapters = {});

  // Returns one vector per text. Throws InvalidArgument if an option does not fit the model, or if
  // a text is too long and `truncate` is false. Throws Failed, with the text's name, if a vector is
  // not finite.
  Embeddings embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;
  // Returns the normalised last hidden state of each token of the prompt and the text, truncated to
  // max_tokens(). Of the options, only the prompt is used. Throws InvalidArgument if the model has
  // no prompt of this name, and Failed if a vector is not finite.
  std::vector<EmbeddedToken> embed_tokens(const std::string& text,
                                          const EmbedOptions& options = {}) const;

  int64_t width() const;       // elements of a vector
  int64_t max_tokens() const;  // maximum tokens of a text, special tokens included
  // Describes how the vectors of tokens become one vector, with the weights of layers if several
  // layers contribute.
  std::string pooling() const;
  const std::string& similarity_name() const;  // cosine, dot, euclidean or manhattan
  const std::map<std::string, std::string>& prompts() const;
  // Returns the similarity of two vectors by similarity_name(); greater = more similar. Throws
  // InvalidArgument if they differ in length.
  float similarity(std::span<const float> a, std::span<const float> b) const;
  const text::Tokenizer& tokenizer() const;
  const std::vector<std::string>& warnings() const;  // see Model::warnings()
  const model::Spec& spec() const;                   // of the Transformer
  // Returns a hash of the files that determine the vectors, which it reads again. It does not
  // depend on the precision chosen at open(), nor on adapters that were added. Throws BadFile if a
  // file cannot be read.
  uint64_t fingerprint() const;

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit Embedder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Compact vector formats. int8 and uint8: each vector is scaled so that its elements fill the range
// -127 .. 127, or 1 .. 255 (128 = 0); this preserves cosines except for rounding. ubinary: one bit
// per element, 1 if the element is positive; the first element is the highest bit of a byte.
// binary: the bytes of ubinary minus 128, as signed bytes.
enum class VectorPrecision { float32, int8, uint8, binary, ubinary };
// Returns the number of bytes of one vector.
int64_t bytes_of_vector(int64_t width, VectorPrecision precision);
// Returns the type of the elements: f32, i8 (int8, binary) or u8 (uint8, ubinary).
DType dtype_of(VectorPrecision precision);

// Vectors in a compact format.
struct CompactVectors {
  std::vector<uint8_t> bytes;  // bytes_of_vector() bytes of each vector
  std::vector<int64_t> shape;  // [count, elements of a vector]
  DType dtype = DType::f32;

  ArrayView view() const { return {bytes.data(), shape, dtype}; }
};
// Converts fp32 vectors [count, width]. Throws InvalidArgument if `vectors` has another dtype or
// number of axes.
CompactVectors quantise_vectors(const ArrayView& vectors, VectorPrecision precision);

struct RerankOptions {
  bool raw = false;  // return the logit, without the model's activation
  // As in EmbedOptions:
  bool truncate = true;
  int64_t batch_tokens = 0;
  std::function<bool()> stop;
};
void visit(RerankOptions& options, OptionVisitor& visitor);

// Scores how well a text answers a query. The model reads query and text together (a cross-encoder,
// Nogueira and Cho 2019), which is slower than comparing vectors, but usually more accurate. Cheap
// to copy; copies share the weights. Safe to use from several threads. References that its
// functions return are valid as long as a copy exists.
class Reranker {
 public:
  // Opens a directory of a sequence classifier with one label. Throws the errors of
  // Embedder::open().
  static Reranker open(const std::string& folder,
                       model::WeightPrecision precision = model::WeightPrecision::stored,
                       const std::vector<model::AdapterUse>& adapters = {});
  // Returns one score for each text, in the order of the texts; greater = better. Throws the errors
  // of Embedder::embed().
  std::vector<float> score(const std::string& query, const std::vector<std::string>& texts,
                           const RerankOptions& options = {}) const;

  const std::vector<std::string>& warnings() const;  // see Model::warnings()
  const model::Spec& spec() const;
  int64_t max_tokens() const;  // of query and text together, special tokens included

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit Reranker(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// The correlations between similarities of vectors and human scores of sentence pairs, in percent:
// the metrics of evaluation_task("similarity").
struct SimilarityEvaluation {
  int64_t pairs = 0;
  MetricValues metrics;
};
// `file` contains scored pairs as in STS benchmarks: CSV or TSV (two texts and a number), or JSON
// lines (sentence1, sentence2, score). Throws BadFile if the file is malformed, with the line, or
// has fewer than two pairs, and the errors of Embedder::embed().
SimilarityEvaluation evaluate_similarity(const Embedder& embedder, const std::string& file,
                                         const EmbedOptions& options = {});

// The evaluation of a model with another pooling of its tokens.
struct PoolingEvaluation {
  std::string pooling;  // by the names of sentence-transformers: cls, max, mean, ...
  bool own = false;     // it is the model's only pooling
  SimilarityEvaluation result;
};
// Evaluates each pooling of the tokens' vectors; the model computes each text once. Modules after
// the pooling apply if the model has a single pooling; of those of other models, only a
// normalisation does. Throws the errors of evaluate_similarity().
std::vector<PoolingEvaluation> evaluate_poolings(const Embedder& embedder, const std::string& file,
                                                 const EmbedOptions& options = {});

}  // namespace fovea::infer
