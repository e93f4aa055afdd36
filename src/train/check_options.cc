#include "train/check_options.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "train/adapters.h"
#include "train/tasks/examples_task.h"

namespace fovea {

void check_data(const TrainOptions& o) {
  const int kinds =
      (o.data.empty() ? 0 : 1) + (o.pairs.empty() ? 0 : 1) + (o.labels.empty() ? 0 : 1);
  check_field(kinds > 0, "data",
              "no file; expected text files, folders or JSON lines, or `pairs`, or `labels`");
  check_field(kinds == 1, "data",
              "several kinds of data; expected only one of `data`, `pairs` and `labels`");
  check_field(o.validation_pairs.empty() || !o.pairs.empty(), "validation_pairs",
              "given without `pairs`; expected both");
  check_field(o.source_prefix.empty() || !o.pairs.empty(), "source_prefix",
              "given without `pairs`; expected both");
  check_field(o.validation_labels.empty() || !o.labels.empty(), "validation_labels",
              "given without `labels`; expected both");
  check_field(o.problem_type == ProblemType::automatic || !o.labels.empty(), "problem_type",
              "given without `labels`; expected both");
  check_field(o.class_weights.empty() || !o.labels.empty(), "class_weights",
              "given without `labels`; expected both");
  check_field(!o.document_mask || !o.data.empty(), "document_mask",
              "given without `data`; expected both");
  const bool fits =
      o.objective == Objective::automatic || (o.objective == Objective::pairs) == !o.pairs.empty();
  check_field(fits && (o.objective == Objective::automatic ||
                       (o.objective == Objective::labels) == !o.labels.empty()),
              "objective",
              "does not match the data; expected objective pairs if `pairs` is given, labels if "
              "`labels` is given, any other for plain text");
}

namespace {

void check_distillation(const DistillationOptions& o) {
  const DistillationOptions none;
  const auto needs_teacher = [&](bool given, const char* field) {
    check_field(!o.teacher.empty() || !given, field, "given without `teacher`; expected both");
  };
  needs_teacher(o.temperature != none.temperature, "temperature");
  needs_teacher(o.alpha != none.alpha, "distillation_alpha");
  needs_teacher(o.top_k != none.top_k, "teacher_top_k");
  needs_teacher(!o.cache.empty(), "teacher_cache");
}

}  // namespace

void check_preferences(const TrainOptions& o, Objective objective) {
  const PreferenceOptions &p = o.preferences, none;
  const auto needs = [&](bool given, const char* field, std::initializer_list<Objective> suitable) {
    std::vector<std::string> names;
    for (const Objective each : suitable) names.emplace_back(name_of(each));
    const bool suits = std::find(suitable.begin(), suitable.end(), objective) != suitable.end();
    check_field(suits || !given, field, "given with the objective {}; expected {}",
                name_of(objective), fmt::join(names, " or "));
  };
  using enum Objective;
  needs(p.beta != none.beta, "preference_beta", {dpo, kto, simpo});
  needs(p.loss != none.loss, "preference_loss", {dpo});
  needs(p.reference_free, "reference_free", {dpo});
  needs(p.desirable != none.desirable, "desirable_weight", {kto});
  needs(p.undesirable != none.undesirable, "undesirable_weight", {kto});
  needs(p.odds != none.odds, "orpo_lambda", {orpo});
  needs(p.gamma != none.gamma, "simpo_gamma", {simpo});
  needs(!p.cache.empty(), "reference_cache", {dpo, kto});
  if (!learns_preferences(objective)) return;
  check_field(o.distillation.teacher.empty(), "objective",
              "{} does not learn from a teacher; expected another objective", name_of(objective));
  const bool flips = objective == dpo && p.loss == PreferenceLoss::sigmoid;
  check_field(flips || o.label_smoothing == 0, "label_smoothing",
              "does not suit the objective; expected dpo with the `preference_loss` sigmoid");
  check_field(o.label_smoothing < 0.5, "label_smoothing",
              "{}; expected less than 0.5, the probability that a pair is in the wrong order",
              o.label_smoothing);
}

void check_options(const TrainOptions& o) {
  check_data(o);
  check_fields(o);
  check_adapter_options(o.lora, o.from);
  check_distillation(o.distillation);
  check_field(
      o.freeze.empty() || o.lora.rank == 0, "freeze",
      "given with `lora`, which trains only the adapters of `lora_targets`; expected one of "
      "them");
  if (!o.out.empty() && !is_folder(o.out)) {
    std::string parent = o.out;  // the existing part of the path
    while (!is_folder(parent) && parent != "." && parent != "/") {
      if (is_file(parent)) {
        fail_field(ErrorKind::InvalidArgument, "out",
                   "{}: {} is a file; expected a directory, or a name for a new one", o.out,
                   parent);
      }
      parent = parent_of(parent);
    }
  }
}

}  // namespace fovea
