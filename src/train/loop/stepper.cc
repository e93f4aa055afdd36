#include "loop/stepper.h"

#include "loop/recommended.h"

#include <cmath>

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

}  // namespace

Stepper::Stepper(model::Transformer& model, TrainingTask& task, const TrainOptions& options,
                 DType compute)
    : model_(model),
      task_(task),
      schedule_(rate_schedule(options)),
      optimizer(trained_parameters(model, task), optimizer_options(options, compute)) {
  if (options.ranks == nullptr) return;
  sharing_.emplace(*options.ranks, trained_parameters(model, task));
  task.share_steps(*sharing_);
}

Stepper::Outcome Stepper::operator()(int64_t step) {
  TrainingTask::StepLoss found = task_.backward(model_, step);
  Outcome outcome;
  outcome.loss = found.loss;
  outcome.tokens = found.tokens;
  outcome.metrics = std::move(found.metrics);
  outcome.learning_rate = learning_rate(schedule_, step);
  outcome.gradient_norm = optimizer.gradient_norm();
  if (std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm)) {
    optimizer.update(step + 1, outcome.learning_rate, outcome.gradient_norm);
  } else {
    outcome.bad_tensor = task_.first_bad_tensor(model_, step);
    if (outcome.bad_tensor.empty()) outcome.bad_tensor = "the loss";
    optimizer.clear_gradients();
  }
  return outcome;
}

}  // namespace fovea::train
