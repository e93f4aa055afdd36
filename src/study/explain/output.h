#pragma once

// The output of a model that is explained: one number for each text, such as the logit of a label.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "embed/sentence_model.h"
#include "transformer/transformer.h"

namespace fovea::study {

// A text, and for each token 1 if it is one of the text's own, or 0 if it was added: a special
// token, or a token of a prompt.
struct ExplainedText {
  infer::TokenizedText tokens;
  std::vector<uint8_t> own;
  // The tokens that the output is about, such as those of an entity, in ascending order; empty for
  // outputs about the whole text. They are never removed.
  std::vector<int64_t> positions = {};

  int64_t length() const { return std::ssize(tokens.ids); }
  std::vector<int64_t> removable() const;
};

// Several texts, and the positions of each.
struct OutputBatch : infer::TokenBatch {
  OutputBatch(infer::TokenBatch batch, std::vector<std::vector<int64_t>> of_rows = {})
      : infer::TokenBatch(std::move(batch)), positions(std::move(of_rows)) {}
  std::vector<std::vector<int64_t>> positions;
};
// Returns the batch of `rows` times the same text.
OutputBatch output_batch(const ExplainedText& text, size_t rows = 1);

struct ExplainedOutput {
  std::shared_ptr<const model::Transformer> model;  // of exact_copy()
  // Returns the numbers of the texts of a batch, f32 [B, 1]; differentiable. The probe, which may
  // be null, receives the values of the Transformer. May be called from several threads.
  std::function<Tensor(const OutputBatch& batch, const model::Probe* probe)> values;
  // Returns the weights, which sum to 1, with which the output reads the rows of the last stack.
  std::function<std::vector<double>(int64_t rows)> reads;
};

// Returns the model, with exact products, so that values with and without gradients agree. Shares
// the weights.
std::shared_ptr<const model::Transformer> exact_copy(const model::Transformer& model);

// Returns the weights of the rows for `pooling`.
std::vector<double> pooled_rows(model::Pooling pooling, int64_t rows);

// Returns the output's value for each text. Throws Failed if one is not finite.
std::vector<double> values_of(const ExplainedOutput& output,
                              const std::vector<ExplainedText>& texts);

}  // namespace fovea::study
