#pragma once

#include <optional>

#include "fovea/train/reinforcement.h"
#include "loop/passes.h"
#include "loop/rollout_batch.h"
#include "loop/step_sharing.h"
#include "losses/policy_loss.h"

namespace fovea::train {

// What the steps on a batch of answers need to know.
struct PolicyTraining {
  ReinforcementOptions options;
  bool ppo = false;
  DType compute = DType::f32;
  int64_t batch = 1;  // answers per forward pass
  int32_t padding = 0;
  uint64_t seed = 0;
  int64_t recompute = 0;           // see TrainOptions
  Communicator* ranks = nullptr;   // that read together; null = this process alone
  StepSharing* sharing = nullptr;  // of their steps

  int64_t epochs() const { return options.batch_epochs > 0 ? options.batch_epochs : ppo ? 4 : 1; }
  int64_t updates() const { return epochs() * options.minibatches; }  // steps for each batch
  double kl_weight() const { return options.kl_weight >= 0 ? options.kl_weight : ppo ? 0.05 : 0; }
};

// The log-probabilities of tokens and, with a head, the values of the states before them: [R], f32
// (f64 in a pass in f64).
struct PolicyOutputs {
  Tensor log_p, values;
};
// Computes them for the labels of a batch, without dropout. `value_head` may be null.
PolicyOutputs policy_outputs(const model::Transformer& model, const model::Linear* value_head,
                             const Batch& batch, const PolicyTraining& training);

// The losses of one pass: total = policy + value_weight * value.
struct PolicyLosses {
  Tensor policy, value, total;  // [1]; `value` is unset without values
};
// `values`: unset if the outputs have no values.
PolicyLosses policy_losses(const PolicyOutputs& outputs, const PolicyTargets& targets,
                           const std::optional<ValueTargets>& values,
                           const PolicyTraining& training);

// Computes the log-probabilities and values of all tokens of a batch, without a tape, in its order.
struct TokenNumbers {
  std::vector<float> log_p, values;
};
TokenNumbers read_tokens(const model::Transformer& model, const model::Linear* value_head,
                         const RolloutBatch& batch, const PolicyTraining& training);

// Adds the gradients of update `update` (from 0) on the batch, the n-th of the run. If the old
// log-probabilities are unknown, those of this update's own forward pass take their place: the
// ratio is 1. Gradients are added by a tree over the passes.
TrainingTask::StepLoss backward_on_batch(const model::Transformer& model,
                                         const model::Linear* value_head, const RolloutBatch& batch,
                                         int64_t n, int64_t update, const PolicyTraining& training);

}  // namespace fovea::train
