#pragma once

// The losses of models that search: which kinds of models and examples each suits.

#include <vector>

#include "embed/example_files.h"
#include "fovea/train/train_embedder.h"
#include "tasks/retriever_model.h"

namespace fovea::train {

// Returns the kind of model that a run trains: the given one, or what the files show.
TrainedKind kind_of(const EmbedderTraining& training);

// Throws a FieldError if an option is one of another kind of models.
void check_kind_options(const EmbedderTraining& training, TrainedKind kind);

// Returns the options with the loss and the parameters that the automatic and unset ones stand for.
// Throws a FieldError if an option does not suit models of this kind, or the loss the examples.
EmbedderTraining with_retriever_loss(EmbedderTraining training, TrainedKind kind,
                                     const infer::TextExamples& examples);

// Whether the loss of a kind reads the scores of a teacher.
bool reads_teacher(TrainedKind kind, EmbeddingLoss loss);

// Whether the loss compares each query with the candidates of all queries.
bool needs_all_scores(const EmbedderTraining& training);

// Returns the loss of the scores of a step. `teacher`: the scores of a teacher [B, K], or their
// margins [B, K - 1], if the loss reads them.
Tensor retriever_loss(const EmbedderTraining& training, const RetrieverScores& scores,
                      const std::vector<float>& teacher);

}  // namespace fovea::train
