#pragma once

// Replaced-token detection (Clark et al. 2020, arXiv:2003.10555): a generator predicts masked
// tokens, and the model predicts which tokens of its input were drawn from these predictions.

#include <vector>

#include "losses/batch.h"

namespace fovea::train {

// Returns the Spec of the generator of a model: its heads, width and hidden widths are multiplied
// by `size`, the embeddings have the model's width, and the head predicts tokens.
model::Spec generator_spec(const model::Spec& model, double size);

// Makes the generator use the embeddings of the model: of tokens, types and positions, with their
// norm (section 3.2).
void share_embeddings(const model::Transformer& model, model::Transformer& generator);

// Returns the parameters that the generator does not share.
std::vector<model::NamedParameter> own_parameters_of(model::Transformer& generator);

// The losses of one batch, and the input of the model.
struct ReplacedTokens {
  Tensor generator_loss;  // f64 [1]: sum over the masked tokens of -log p(token) / divisor
  Batch batch;            // with drawn tokens in place of the masked ones; labels: 1 = replaced
};
// `batch` has masked tokens, their labels and DrawnTokens. Draws a token for each masked one from
// the generator's probabilities; one that equals the original is not replaced.
ReplacedTokens replace_tokens(const model::Transformer& generator, const Batch& batch,
                              const model::Pass& pass, double divisor);

// Returns the logits of "replaced" for the tokens of a batch, f32 [B, T].
Tensor detection_logits(const model::Transformer& model, const Batch& batch,
                        const model::Pass& pass);

// Returns the sum over tokens of -log sigmoid(z) where the label is 1, and of -log sigmoid(-z)
// elsewhere, divided by `divisor`.   z [B, T], labels i32 [B, T] in {0, 1} -> f64 [1]
Tensor detection_loss(const Tensor& z, const Tensor& labels, double divisor);

}  // namespace fovea::train
