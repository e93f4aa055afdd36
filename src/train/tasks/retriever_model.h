#pragma once

// The kinds of models that RetrieverTask trains, each in a file: sparse encoders, late interaction
// models and cross-encoders. Letters: B queries, K candidates of each.

#include <memory>
#include <string>
#include <vector>

#include "embed/text_format.h"
#include "fovea/infer/retrieval.h"
#include "fovea/train/train_embedder.h"
#include "loading/loading.h"
#include "loop/job.h"

namespace fovea::train {

using TextPointers = std::vector<const std::string*>;

// Texts, or pairs of texts, that pass through the model in a step. Each becomes one or more rows of
// numbers: a vector, the vectors of its tokens, or a score.
struct RetrieverInput {
  std::vector<infer::TokenizedText> texts;
  infer::TextRole role = infer::TextRole::document;
  std::vector<int64_t> added = {};  // tokens of the expansion of each text
  std::vector<int64_t> starts =
      {};  // the first row of each text, and the number of all: [texts + 1]

  // The number of rows of a text.
  int64_t rows_of(size_t text) const { return starts[text + 1] - starts[text]; }
  // Appends a text with this number of rows.
  void add_rows(int64_t count) {
    if (starts.empty()) starts.push_back(0);
    starts.push_back(starts.back() + count);
  }
};

// The scores of a step's queries.
struct RetrieverScores {
  Tensor own;  // [B, K]: the candidates of each query, of which the first is the positive
  // [B, K B]: the candidates of all queries, the first ones of all queries before the second ones;
  // empty if the loss reads only `own`, or if `own` has the negatives of other queries as well.
  Tensor all;
};

class RetrieverModel {
 public:
  virtual ~RetrieverModel() = default;

  virtual const infer::TextFormat& format() const = 0;
  virtual const model::Origin& origin() const = 0;
  virtual int64_t width() const = 0;  // of a row
  // Parameters that are trained besides those of the Transformer.
  virtual std::vector<model::NamedParameter> parameters() { return {}; }
  // Tells what the plan should name; empty = nothing.
  virtual std::string note() const { return {}; }
  // The number of candidates of other queries that are drawn for each query as negatives.
  virtual int64_t drawn_negatives() const { return 0; }

  // Returns the inputs for B queries and K B candidates, in the order of RetrieverScores::all.
  virtual std::vector<RetrieverInput> inputs(const TextPointers& queries,
                                             const TextPointers& candidates) const = 0;
  // Returns the rows of the chosen texts, one after the other: [rows, width]. Differentiable; each
  // text has at least one token.
  virtual Tensor rows(const model::Transformer& transformer, const RetrieverInput& input,
                      const std::vector<size_t>& chosen) const = 0;
  // Returns the scores of B `queries` by the rows of all inputs. `needs_all`: whether the loss
  // reads `all`.
  virtual RetrieverScores scores(const std::vector<RetrieverInput>& inputs,
                                 const std::vector<Tensor>& rows, int64_t queries,
                                 bool needs_all) const = 0;
  // Returns what is added to the loss. `risen`: the part of its weight that this step has.
  virtual Tensor regulariser(const std::vector<Tensor>&, double) const { return {}; }
  // Whether the new directory has the modules of the initial one, whose files are copied.
  virtual bool copies_modules() const = 0;
  // Writes the files of modules after the Transformer that are new.
  virtual void write_modules(const std::string& folder, const model::Spec& spec) const = 0;
};

// The models of a run; `transformer` receives the Transformer.
std::unique_ptr<RetrieverModel> open_sparse_retriever(const EmbedderTraining& training,
                                                      model::Transformer& transformer,
                                                      const Say& say);
std::unique_ptr<RetrieverModel> open_token_retriever(const EmbedderTraining& training,
                                                     model::Transformer& transformer,
                                                     const Say& say);
std::unique_ptr<RetrieverModel> open_pair_scorer(const EmbedderTraining& training,
                                                 model::Transformer& transformer, const Say& say);

}  // namespace fovea::train
