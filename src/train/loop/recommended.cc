#include "loop/recommended.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/fields.h"
#include "loop/examples_task.h"
#include "optim/schedule.h"

namespace fovea::train {
namespace {

// The peak rates of a model that exists, which other programs use for the same task: transformers'
// examples and Trainer, PEFT, TRL, and the papers of the methods. An adapter begins at zero and is
// small, so its rate is about ten times that of all weights.
struct Row {
  Objective objective;
  const char* task;
  double all_weights, adapters;
  double epochs;
};
constexpr std::array kRows = {
    Row{Objective::next_token, "text", 2e-5, 2e-4, 3},
    Row{Objective::masked, "masked tokens", 5e-5, 2e-4, 3},
    Row{Objective::spans, "spans", 5e-5, 2e-4, 3},
    Row{Objective::replaced_tokens, "replaced tokens", 5e-5, 2e-4, 3},
    Row{Objective::pairs, "pairs", 5e-5, 2e-4, 3},
    Row{Objective::labels, "labels", 2e-5, 2e-4, 3},
    Row{Objective::chats, "conversations", 2e-5, 2e-4, 3},
    Row{Objective::contrastive, "images with captions", 1e-5, 1e-4, 3},
    Row{Objective::reward, "rewards", 1e-5, 1e-4, 1},
    Row{Objective::dpo, "preferences", 1e-6, 2e-5, 1},
    Row{Objective::kto, "preferences", 1e-6, 2e-5, 1},
    Row{Objective::simpo, "preferences", 1e-6, 2e-5, 1},
    Row{Objective::orpo, "preferences", 5e-6, 2e-5, 1},
    Row{Objective::ppo, "rewards of generated answers", 1e-6, 2e-5, 1},
    Row{Objective::grpo, "rewards of generated answers", 1e-6, 2e-5, 1},
    // A table has no layers that could break, and each step changes few of its rows.
    Row{Objective::skip_gram, "neighbouring tokens", 1e-3, 1e-3, 3},
};

const Row& row_of(Objective objective) {
  const auto found = std::find_if(kRows.begin(), kRows.end(),
                                  [&](const Row& row) { return row.objective == objective; });
  return found == kRows.end() ? kRows.front() : *found;
}

// Sets the number of steps that the epochs determine. With a whole number of passes, a step does
// not combine the passes of two epochs; without, the last step has the passes that are left.
int64_t steps_of(const TrainOptions& o, double epoch) {
  const Growth passes = passes_of(o, epoch);
  double steps = std::ceil(o.epochs * epoch / mean_passes(o));
  if (passes.epoch > 0) {
    const double whole = std::floor(o.epochs * epoch / static_cast<double>(passes.epoch)),
                 rest = o.epochs * epoch - whole * static_cast<double>(passes.epoch);
    steps = whole * static_cast<double>(passes.steps_per_epoch()) +
            std::ceil(rest / static_cast<double>(passes.last));
  }
  check_field(steps <= 1e9, "epochs", "{} steps; expected at most 1000000000", steps);
  return std::max<int64_t>(1, std::llround(steps));
}

void choose_length(Job& job, const Recommended& best, double epoch) {
  TrainOptions& o = job.options;
  if (o.epochs > 0) {
    o.steps = steps_of(o, epoch);
  } else if (o.steps == 0) {
    o.epochs = best.epochs;
    o.steps = o.epochs > 0 ? steps_of(o, epoch) : kRecommendedSteps;
    if (o.steps > kRecommendedSteps) {
      o.epochs = 0;
      o.steps = kRecommendedSteps;
    }
    o.steps = setting_of_snapshot(job, "steps", o.steps);
    job.plan.length_reason = best.reason;
  }
}

}  // namespace

TrainedPart trained_by(const TrainOptions& o) {
  if (o.from.empty()) return TrainedPart::new_model;
  return o.lora.rank > 0 ? TrainedPart::adapters : TrainedPart::all_weights;
}

Recommended recommended(Objective objective, TrainedPart trained) {
  if (trained == TrainedPart::new_model)
    return {kRateOfNewModel, 0, "training from random weights"};
  const Row& row = row_of(objective);
  const bool adapters = trained == TrainedPart::adapters;
  return {adapters ? row.adapters : row.all_weights, row.epochs,
          fmt::format("fine-tuning of {} on {}", adapters ? "adapters" : "all weights", row.task)};
}

double recommended_rate(Objective objective, bool adapters) {
  return recommended(objective, adapters ? TrainedPart::adapters : TrainedPart::all_weights).rate;
}

void choose_training(Job& job, Objective objective, double epoch) {
  TrainOptions& o = job.options;
  TrainPlan& plan = job.plan;
  const Recommended best = recommended(objective, trained_by(o));
  if (o.learning_rate < 0) {
    o.learning_rate = number_of_snapshot(job, "learning_rate", best.rate);
    plan.rate_reason = best.reason;
  }
  choose_length(job, best, epoch);
  if (o.warmup < 0) o.warmup = setting_of_snapshot(job, "warmup", -1);
  if (o.warmup < 0) o.warmup = usual_warmup(o.steps);
  plan_rates(job);
}

void plan_rates(Job& job) {
  const TrainOptions& o = job.options;
  TrainPlan& plan = job.plan;
  plan.learning_rate = o.learning_rate;
  plan.final_rate = o.final_rate;
  plan.warmup = o.warmup;
  plan.schedule = name_of(o.schedule);
  plan.steps = o.steps;
}

}  // namespace fovea::train
