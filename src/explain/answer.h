#pragma once

// The answer of a model that is explained: one number for each text, such as the logit of a label.

#include <functional>
#include <memory>
#include <vector>

#include "embed/sentence_model.h"
#include "model/transformer.h"

namespace fovea {

struct ExplainedAnswer {
  std::shared_ptr<const Transformer> model;  // of exact_copy()
  // Returns the numbers of the texts of a batch, f32 [B, 1]; differentiable. The probe, which may
  // be null, receives the values of the Transformer. May be called from several threads.
  std::function<Tensor(const TokenBatch& batch, const Probe* probe)> values;
  // Returns the weights, which sum to 1, with which the answer reads the rows of the last stack.
  std::function<std::vector<double>(int64_t rows)> reads;
};

// A text, and for each token 1 if it is one of the text's own, or 0 if it was added: a special
// token, or a token of a prompt.
struct ExplainedText {
  TokenizedText tokens;
  std::vector<uint8_t> own;

  int64_t length() const { return std::ssize(tokens.ids); }
  std::vector<int64_t> own_places() const;
};

// Returns the model, with exact products, so that values with and without gradients agree. Shares
// the weights.
std::shared_ptr<const Transformer> exact_copy(const Transformer& model);

// Returns the weights of the rows for `pooling`.
std::vector<double> pooled_rows(Pooling pooling, int64_t rows);

// Returns the answer's value for each text. Throws Failed if one is not finite.
std::vector<double> values_of(const ExplainedAnswer& answer,
                              const std::vector<TokenizedText>& texts);

}  // namespace fovea
