#pragma once

// The loss of an embedder's steps: which examples each suits, and its parameters.

#include <vector>

#include "embed/example_files.h"
#include "fovea/train/train_embedder.h"
#include "losses/embedding_losses.h"

namespace fovea::train {

// Returns whether the loss reads the scores of a teacher.
bool needs_teacher(EmbeddingLoss loss);

// Returns the options with the loss and the parameters that the automatic and unset ones stand for.
// Throws a FieldError if the loss does not suit the examples, or does not use a parameter that is
// given.
EmbedderTraining with_loss(EmbedderTraining training, const infer::TextExamples& examples);

// The vectors of a step and what the file says about its examples.
struct EmbedderStep {
  ExampleVectors vectors;
  ExampleVectors guide;       // of the same texts, if there is a guide
  std::vector<float> scores;  // [B], or of a teacher: [B, N] or [B, 1 + N]
};

// Returns the sum of the losses over the full width and the requested widths, each with the weight
// 1, as MatryoshkaLoss of sentence-transformers. `training` is that of with_loss().
Tensor embedder_loss(const EmbedderTraining& training, const EmbedderStep& step);

}  // namespace fovea::train
