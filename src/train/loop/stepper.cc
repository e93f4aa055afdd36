#include "loop/stepper.h"

#include <cmath>

#include "base/error.h"
#include "loop/recommended.h"
#include "metrics/correlation.h"
#include "tensor/tensor.h"

namespace fovea::train {

OptimizerOptions optimizer_options(const TrainOptions& o, DType compute) {
  return {.beta1 = o.beta1,
          .beta2 = o.beta2,
          .epsilon = o.epsilon,
          .weight_decay = o.weight_decay,
          .clip = o.clip,
          .packed_moments = o.moments == MomentPrecision::bits8,
          .seed = o.seed,
          .up_rate = o.lora.plus,
          .products = compute,
          .choice = o.optimizer};
}

RateSchedule rate_schedule(const TrainOptions& o) {
  return {.kind = o.schedule,
          .peak = o.learning_rate < 0 ? kRateOfNewModel : o.learning_rate,
          .final_rate = o.final_rate,
          .steps = o.steps > 0 ? o.steps : kRecommendedSteps,
          .warmup = o.warmup,
          .decay_fraction = o.decay_fraction};
}

namespace {

std::vector<model::NamedParameter> trained_parameters(model::Transformer& model,
                                                      const TrainingTask& task) {
  std::vector<model::NamedParameter> all = model::parameters_of(model);
  for (const model::NamedParameter& own : task.own_parameters()) all.push_back(own);
  return all;
}

std::optional<Shards> shards_of(model::Transformer& model, const TrainingTask& task,
                                const TrainOptions& options, DType compute) {
  if (options.ranks == nullptr || options.sharing.shard == Sharded::nothing) return std::nullopt;
  return std::optional<Shards>(std::in_place, *options.ranks, trained_parameters(model, task),
                               optimizer_options(options, compute),
                               options.sharing.gradients == GradientPrecision::bf16);
}

}  // namespace

Stepper::Stepper(model::Transformer& model, TrainingTask& task, const TrainOptions& options,
                 DType compute)
    : model_(model),
      task_(task),
      schedule_(rate_schedule(options)),
      sync_every_(options.sharing.sync_every),
      shards_(shards_of(model, task, options, compute)),
      optimizer_(shards_ ? shards_->own() : trained_parameters(model, task),
                 optimizer_options(options, compute)) {
  if (options.ranks == nullptr) return;
  const bool local = options.sharing.sync_every > 1;
  sharing_.emplace(*options.ranks, trained_parameters(model, task),
                   StepSharing::Options{.shards = shards_ ? &*shards_ : nullptr,
                                        .gradients = options.sharing.gradients,
                                        .local = local});
  if (local) local_.emplace(options, trained_parameters(model, task));
  task.share_steps(*sharing_);
}

Stepper::Outcome Stepper::operator()(int64_t step) {
  TrainingTask::StepLoss found = task_.backward(model_, step);
  Outcome outcome;
  outcome.loss = found.loss;
  outcome.tokens = found.tokens;
  outcome.metrics = std::move(found.metrics);
  if (sharing_ && !local_)
    outcome.metrics.emplace_back("gradient_wait_ms", 1e3 * sharing_->waited());
  outcome.learning_rate = learning_rate(schedule_, step);
  outcome.gradient_norm = shards_ ? shards_->gradient_norm(optimizer_) : optimizer_.gradient_norm();
  if (std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm)) {
    optimizer_.update(step + 1, outcome.learning_rate, outcome.gradient_norm);
    if (shards_) shards_->gather_weights();
  } else {
    outcome.bad_tensor = task_.first_bad_tensor(model_, step);
    if (outcome.bad_tensor.empty() && shards_) outcome.bad_tensor = shards_->bad_gradient();
    if (outcome.bad_tensor.empty()) outcome.bad_tensor = "the loss";
    optimizer_.clear_gradients();
  }
  if (local_ && synchronises(step + 1)) {
    local_->synchronise();
    outcome.loss = infer::mean_of(sharing_->gather({outcome.loss}));
  }
  return outcome;
}

int64_t Stepper::last_synchronised(int64_t steps) const {
  return steps == schedule_.steps ? steps : steps / sync_every_ * sync_every_;
}

std::map<std::string, Tensor> Stepper::state() {
  if (shards_) return shards_->state(optimizer_);
  std::map<std::string, Tensor> all = optimizer_.state();
  if (local_) local_->add_state(all);
  return all;
}

void Stepper::restore(const model::Snapshot& snapshot) {
  for (const auto& [name, tensor] : optimizer_.state()) {
    const Tensor stored = snapshot.tensors.tensor(name);
    const auto [start, whole] =
        shards_ ? shards_->part_of(name, tensor) : Shards::Part{0, tensor.shape()};
    check(stored.shape() == whole && stored.dtype() == tensor.dtype(),
          "{}: {} is {} {}; expected {} {}", snapshot.path, name, name_of(stored.dtype()),
          describe(stored.shape()), name_of(tensor.dtype()), describe(whole));
    copy_elements(tensor, 0, stored, start, tensor.size());
  }
  if (local_) local_->restore(snapshot);
}

}  // namespace fovea::train
