#pragma once

// The job of training on examples of texts: what embedders and models that search share.

#include <vector>

#include "fovea/infer/metrics.h"
#include "fovea/text/tokenizer.h"
#include "fovea/train/train_embedder.h"
#include "loop/job.h"

namespace fovea::train {

void check_embedder_options(const EmbedderTraining& training);

// The core's options for a run of this many steps.
TrainOptions core_options(const EmbedderTraining& training, int64_t steps);

// The order of the examples of a run.
struct ExampleOrder {
  int64_t count, batch;
  uint64_t seed;

  int64_t steps_per_epoch() const { return (count + batch - 1) / batch; }
  std::vector<size_t> of_step(int64_t step) const;
};

// Returns the evaluation task "similarity" with only Spearman's correlation, which selects the best
// weights.
infer::EvaluationTask spearman_evaluation();

// Returns the settings of a run, which a resumed run must share.
nlohmann::ordered_json embedder_settings(const EmbedderTraining& training, const model::Spec& spec,
                                         const text::Tokenizer& tokenizer);

// The size of the data, for the plan.
struct PlannedExamples {
  int64_t count, held_out;
  double tokens_each;  // the mean number of tokens of an example
  double steps_per_epoch;
  int64_t vocabulary;
};
// Sets the plan. In each step, the texts pass through the model twice, once without gradients; this
// takes 4/3 of the operations of a usual step.
void plan_examples(Job& job, const PlannedExamples& examples, const model::Spec& spec);

}  // namespace fovea::train
