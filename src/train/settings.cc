#include "train/settings.h"

#include "train/tasks/examples_task.h"

namespace fovea {
namespace {

const char* name_of(Averaged of) { return of == Averaged::last ? "last" : "best"; }

// Settings that only some objectives use.
void add_settings_of_objective(const TrainOptions& o, Objective objective,
                               nlohmann::ordered_json& s) {
  if (objective == Objective::pairs) {
    s["batch_tokens"] = o.batch_tokens;
    s["source_prefix"] = o.source_prefix;
    if (o.best_by == "bleu" || o.best_by == "chrf") s["bleu_lines"] = o.bleu_lines;
  } else if (objective != Objective::labels) {
    s["evaluate_windows"] = o.evaluate_windows;  // losses of other windows are not comparable
  }
  if (objective == Objective::masked || objective == Objective::spans) {
    s["mask"] = o.mask;
    s["mean_span"] = o.mean_span;
  }
}

}  // namespace

nlohmann::ordered_json settings_of(const TrainOptions& o, Objective objective) {
  nlohmann::ordered_json s;
  s["objective"] = name_of(objective);
  s["from"] = o.from;
  s["steps"] = o.steps;
  s["batch"] = o.batch;
  s["length"] = o.length;
  s["accumulate"] = o.accumulate;
  s["validation"] = o.validation;
  s["tokenizer"] = o.tokenizer;
  s["max_vocabulary"] = o.max_vocabulary;
  s["learning_rate"] = o.learning_rate;
  s["final_rate"] = o.final_rate;
  s["warmup"] = o.warmup;
  s["schedule"] = static_cast<int>(o.schedule);
  s["decay_fraction"] = o.decay_fraction;
  s["beta1"] = o.beta1;
  s["beta2"] = o.beta2;
  s["epsilon"] = o.epsilon;
  s["weight_decay"] = o.weight_decay;
  s["clip"] = o.clip;
  s["label_smoothing"] = o.label_smoothing;
  s["seed"] = o.seed;
  s["average"] = o.average;
  if (o.average > 1) {
    s["average_of"] = name_of(o.average_of);
    s["evaluate_every"] = o.evaluate_every;  // the evaluations whose weights are averaged
  }
  s["best_by"] = o.best_by;
  add_settings_of_objective(o, objective, s);
  return s;
}

}  // namespace fovea
