#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

struct EmbedOptions {
  // What stands in front of each text: the model's prompt of a name ("query", "document", ...), or
  // a prompt of your own. Neither: the model's default, which is mostly none.
  std::string prompt_name;
  std::optional<std::string> prompt;
  // Only the first elements of a vector, for models trained so (Kusupati et al. 2022); 0 = all.
  int64_t dimensions = 0;
  // Whether vectors have length 1. Absent: as the model says; what is cut is then made whole again.
  std::optional<bool> normalise;
  // A text of too many tokens loses its end; otherwise it is an error.
  bool truncate = true;
  int64_t batch_tokens = 0;  // that go through the model at a time; 0 = as many as are fastest
  std::function<std::string(size_t)> name_of_text;  // for errors; absent: "text 1", ...
  // Asked before each text is tokenized, from several threads: true ends the work with Failed.
  std::function<bool()> stop;
};

struct Embeddings {
  int64_t count = 0, width = 0;
  std::vector<float> values;    // [count, width], in the order of the texts
  std::vector<int64_t> tokens;  // of each text, special ones included
  std::vector<int64_t> cut;     // of each text, tokens that did not fit
};

// One token of a text: its bytes, and its vector of length 1. Special tokens and those of a prompt
// have no bytes.
struct EmbeddedToken {
  size_t begin, end;
  std::vector<float> vector;
};

// Turns texts into vectors, so that texts of like meaning have vectors of like direction (Reimers
// and Gurevych 2019). Cheap to copy; safe to use from several threads at a time. A text's vector is
// the same to the bit whatever else is embedded with it.
class Embedder {
 public:
  // A sentence-transformers directory, or a Hugging Face directory of an encoder or decoder, whose
  // tokens are then averaged. BadFile or Unsupported, in one line, where it does not hold together;
  // `warnings` receives what is odd but harmless.
  static Embedder open(const std::string& folder, std::vector<std::string>* warnings = nullptr,
                       WeightPrecision precision = WeightPrecision::stored);

  // InvalidArgument for an option that does not fit the model; Failed, with the place, for a text
  // whose vector is not finite.
  Embeddings embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;
  // The last hidden state of each token of a text.
  std::vector<EmbeddedToken> embed_tokens(const std::string& text,
                                          const EmbedOptions& options = {}) const;

  int64_t width() const;                       // of a vector
  int64_t max_tokens() const;                  // of a text, special ones included
  const std::string& similarity_name() const;  // cosine, dot, euclidean or manhattan
  const std::map<std::string, std::string>& prompts() const;
  float similarity(const float* a, const float* b, int64_t width) const;  // more = more alike
  const Tokenizer& tokenizer() const;
  const Spec& spec() const;  // of the Transformer
  // Of the files that decide the vectors, whatever the precision that they were opened with.
  uint64_t fingerprint() const;

  struct Parts;  // what is inside, for the library itself
  const Parts& parts() const { return *parts_; }

 private:
  explicit Embedder(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Vectors in fewer bytes. int8 and uint8: each vector is scaled by its own largest element, to -127
// .. 127 or 1 .. 255 (128 = 0), so that cosines stay. binary, ubinary: a bit for each element, 1
// where it is positive, the first in the highest bit of a byte; as signed bytes 128 less.
enum class VectorPrecision { float32, int8, uint8, binary, ubinary };
int64_t bytes_of_vector(int64_t width, VectorPrecision precision);
// values [count, width] -> count * bytes_of_vector() bytes
std::vector<uint8_t> quantise_vectors(const float* values, int64_t count, int64_t width,
                                      VectorPrecision precision);

struct RerankOptions {
  bool raw = false;  // the model's number as it is, without the activation that its files name
  bool truncate = true;
  int64_t batch_tokens = 0;
  std::function<bool()> stop;  // see EmbedOptions
};

// Scores how well texts answer a query, reading both together (a cross-encoder: Nogueira and Cho
// 2019): slower and better than comparing vectors.
class Reranker {
 public:
  // A directory of a sequence classifier with one label.
  static Reranker open(const std::string& folder, std::vector<std::string>* warnings = nullptr,
                       WeightPrecision precision = WeightPrecision::stored);
  // One score for each text, more = better, in the order of the texts.
  std::vector<float> score(const std::string& query, const std::vector<std::string>& texts,
                           const RerankOptions& options = {}) const;

  const Spec& spec() const;
  int64_t max_tokens() const;  // of query and text together, special ones included

  struct Parts;  // what is inside, for the library itself
  const Parts& parts() const { return *parts_; }

 private:
  explicit Reranker(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// How well similarities of vectors order pairs of sentences that people scored, in percent.
struct SimilarityEvaluation {
  int64_t pairs = 0;
  double spearman = 0, pearson = 0;
};
// A file of pairs and scores, as STS benchmarks are: CSV or TSV (two texts and a number), or JSON
// lines (sentence1, sentence2, score). BadFile names the line.
SimilarityEvaluation evaluate_similarity(const Embedder& embedder, const std::string& file,
                                         const EmbedOptions& options = {});

struct EmbedBench {
  std::string isa;
  int threads = 0;
  int64_t sentences = 0, tokens = 0;
  double seconds = 0;  // the median of the runs, tokenising included
  double sentences_per_second = 0, tokens_per_second = 0;
};
// Embeds the texts `runs` times, after once for warming up.
EmbedBench bench_embedding(const Embedder& embedder, const std::vector<std::string>& texts,
                           int64_t runs, const EmbedOptions& options = {});

}  // namespace fovea
