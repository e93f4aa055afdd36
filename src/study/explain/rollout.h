#pragma once

#include <vector>

#include "explain/output.h"

namespace fovea::study {

// Attention rollout (Abnar and Zuidema 2020, eq. 1): the attention of a layer is 0.5 A + 0.5 I,
// where A is the mean of the heads' attention weights and I stands for the residual connection. The
// product over the layers tells how much of each token is in each row of the last stack; the
// result is the mean of the rows that the output reads. In an encoder-decoder, cross-attention is a
// further layer, 0.5 C + 0.5 I, whose keys are the encoder's rows, and a token has the sum over its
// positions in both stacks.
std::vector<double> rollout(const ExplainedOutput& output, const ExplainedText& text);

// Returns whether all layers have attention weights.
bool has_rollout(const model::Transformer& model);
// Throws Unsupported, naming the layer, if one has none.
void check_rollout(const model::Transformer& model);

}  // namespace fovea::study
