#include "train/settings.h"

#include "base/error.h"
#include "base/json.h"

namespace fovea {
namespace {

// The fields whose values differ, each as "spec.width was 16 and is 32". A field that the snapshot
// lacks was not kept by the version that made it.
void compare(const nlohmann::json& before, const nlohmann::json& now, const std::string& name,
             std::vector<std::string>& changed) {
  if (before == now) return;
  if (!now.is_object() || !before.is_object()) {
    changed.push_back(fmt::format("{} was {} and is {}", name,
                                  before.is_null() ? "absent" : brief(before), brief(now)));
    return;
  }
  for (const auto& [key, value] : now.items()) {
    if (name.empty() && !before.contains(key)) continue;
    compare(before.value(key, nlohmann::json()), value, name.empty() ? key : name + "." + key,
            changed);
  }
}

// Once "tokenizer" was what "tokenizer_hash" is now.
nlohmann::json settings_in(const Snapshot& snapshot) {
  nlohmann::json kept = snapshot.state.value("settings", nlohmann::json::object());
  if (kept.is_object() && !kept.contains("tokenizer_hash")) kept.erase("tokenizer");
  return kept;
}

const char* name_of(Averaged of) { return of == Averaged::last ? "last" : "best"; }

// What only some objectives have a use for.
void add_settings_of_objective(const TrainOptions& o, Objective objective,
                               nlohmann::ordered_json& s) {
  if (objective == Objective::pairs) {
    s["batch_tokens"] = o.batch_tokens;
    s["source_prefix"] = o.source_prefix;
    if (o.best_by == "bleu" || o.best_by == "chrf") s["bleu_lines"] = o.bleu_lines;
  } else if (objective != Objective::labels) {
    s["evaluate_windows"] = o.evaluate_windows;  // losses of other windows cannot be compared
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
    s["evaluate_every"] = o.evaluate_every;  // whose weights the mean is of
  }
  s["best_by"] = o.best_by;
  add_settings_of_objective(o, objective, s);
  return s;
}

nlohmann::ordered_json settings(const Job& job) {
  nlohmann::ordered_json s;
  s["spec"] = nlohmann::ordered_json::parse(write_spec(job.spec));
  s["data"] = fmt::format("{:016x}", job.examples->hash);
  s["tokenizer_hash"] = fmt::format("{:016x}", job.tokenizer->hash());
  s["precision"] = name_of(job.compute);
  s.update(settings_of(job.options, objective_of(job.options, job.spec)));
  return s;
}

void check_settings(const Job& job) {
  std::vector<std::string> changed;
  compare(settings_in(*job.snapshot), settings(job), "", changed);
  if (!changed.empty() && !job.options.allow_change) {
    fail(ErrorKind::InvalidArgument,
         "--out: {} holds a run with other settings ({}); expected the same, another directory, or "
         "--allow-change",
         job.options.out, fmt::join(changed, "; "));
  }
}

}  // namespace fovea
