#include "train/check_options.h"

#include <unistd.h>

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "train/adapters.h"
#include "train/tasks/examples_task.h"

namespace fovea {

namespace {

void check_images(const TrainOptions& o) {
  const ImageAugmentation none;
  const bool given = !o.images.empty();
  check_field(given || o.validation_images.empty(), "validation_images",
              "given without `images`; expected both");
  check_field(given || o.augmentation.crop == none.crop, "image_crop",
              "given without `images`; expected both");
  check_field(given || !o.augmentation.flip, "image_flip", "given without `images`; expected both");
  check_field(given || o.augmentation.mixup == 0, "mixup", "given without `images`; expected both");
  check_field(given || o.augmentation.operations == 0, "rand_augment",
              "given without `images`; expected both");
  check_field(o.augmentation.operations > 0 || o.augmentation.magnitude == none.magnitude,
              "rand_augment_magnitude", "given without `rand_augment`; expected both");
  check_field(!given || o.distillation.teacher.empty(), "teacher",
              "given with `images`; expected texts");
}

}  // namespace

void check_data(const TrainOptions& o) {
  const int kinds = (o.data.empty() ? 0 : 1) + (o.pairs.empty() ? 0 : 1) +
                    (o.labels.empty() ? 0 : 1) + (o.images.empty() ? 0 : 1);
  check_field(kinds > 0, "data",
              "no file; expected text files, folders or JSON lines, or `pairs`, `labels` or "
              "`images`");
  check_field(kinds == 1, "data",
              "several kinds of data; expected only one of `data`, `pairs`, `labels` and `images`");
  check_images(o);
  // A model of speech may have its recordings in `data`.
  check_field(o.validation_pairs.empty() || !o.pairs.empty() || !o.data.empty(), "validation_pairs",
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
  check_field(
      fits && (o.objective == Objective::automatic || o.objective == Objective::contrastive ||
               (o.objective == Objective::labels) == (!o.labels.empty() || !o.images.empty())),
      "objective",
      "does not match the data; expected objective pairs if `pairs` is given, labels if "
      "`labels` or `images` is given, any other for plain text");
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

// The values of all fields, as text.
class FieldValues : public OptionVisitor {
 public:
  std::vector<std::pair<std::string, std::string>> all;
  void integer(const Field& f, int64_t& v, int64_t, int64_t) override { put(f, v); }
  void number(const Field& f, double& v, double, double) override { put(f, v); }
  void boolean(const Field& f, bool& v) override { put(f, v); }
  void choice(const Field& f, int& v, const Names&) override { put(f, v); }
  void text(const Field& f, std::string& v) override { put(f, v); }
  void texts(const Field& f, std::vector<std::string>& v) override {
    put(f, fmt::format("{}", fmt::join(v, "\n")));
  }

 private:
  template <class T>
  void put(const Field& field, const T& value) {
    all.emplace_back(field.name, fmt::format("{}", value));
  }
};

std::vector<std::pair<std::string, std::string>> values_in(ReinforcementOptions options) {
  FieldValues values;
  visit(options, values);
  return values.all;
}

void check_optimizer(const TrainOptions& o) {
  const OptimizerChoice &given = o.optimizer, none;
  const auto needs = [&](bool changed, const char* field, bool suits, const char* suitable) {
    check_field(suits || !changed, field, "given with another `optimizer`; expected {}", suitable);
  };
  const bool muon = given.kind == OptimizerKind::muon, sgd = given.kind == OptimizerKind::sgd;
  needs(given.momentum != none.momentum, "momentum", sgd || muon, "sgd or muon");
  needs(given.nesterov != none.nesterov, "nesterov", sgd || muon, "sgd or muon");
  needs(given.muon_scale != none.muon_scale, "muon_scale", muon, "muon");
  needs(given.muon_rate != none.muon_rate, "muon_rate", muon, "muon");
  needs(given.relative_rate != none.relative_rate, "relative_rate",
        given.kind == OptimizerKind::adafactor, "adafactor");
  needs(o.moments == MomentPrecision::bits8, "moments", given.kind == OptimizerKind::adamw,
        "adamw, or moments of fp32");
}

void check_growth(const TrainOptions& o) {
  check_field(o.accumulate_from <= o.accumulate, "accumulate_from",
              "{}; expected at most {}, the number in `accumulate`", o.accumulate_from,
              o.accumulate);
  check_field(o.growth == TrainOptions().growth || o.accumulate_from > 0 || o.window_from > 0,
              "growth", "given without `accumulate_from` or `window_from`; expected one of them");
}

void check_reinforcement(const TrainOptions& o) {
  const ReinforcementOptions& r = o.reinforcement;
  const bool grpo = o.objective == Objective::grpo, used = grpo || o.objective == Objective::ppo;
  if (!used) {
    const auto given = values_in(r), none = values_in({});
    for (size_t i = 0; i < given.size(); ++i)
      check_field(given[i] == none[i], given[i].first.c_str(),
                  "given without `objective` ppo or grpo; expected both");
    return;
  }
  check_field(!o.from.empty(), "from", "not given; expected the model that writes the answers");
  check_field(!r.rewards.empty() || !r.reward_command.empty(), "rewards",
              "none; expected at least one, or `reward_command`");
  check_field(!grpo || r.answers > 1, "answers",
              "{}; expected at least 2 for grpo, which compares the answers to a prompt",
              r.answers);
  check_field(r.minibatches <= r.prompts * r.answers, "minibatches",
              "{}; expected at most {}, the answers of a batch", r.minibatches,
              r.prompts * r.answers);
  check_field(o.accumulate == 1, "accumulate",
              "{}; expected 1: `batch` limits the answers in one forward pass", o.accumulate);
  check_field(o.label_smoothing == 0, "label_smoothing", "given with ppo or grpo; expected 0");
  check_field(o.distillation.teacher.empty(), "teacher",
              "given with ppo or grpo; expected another objective");
  check_field(o.length == 0, "length",
              "{}; expected 0 with ppo and grpo: `answer_tokens` limits the answers, and prompts "
              "are never truncated",
              o.length);
  check_field(!o.document_mask, "document_mask",
              "given with ppo or grpo, whose texts never share a row; expected none");
  check_field(o.train_on == TrainOn::all, "train_on",
              "given with ppo or grpo, which train the answers of the model; expected all");
  check_field(o.validation_chats.empty(), "validation_chats",
              "given with ppo or grpo; expected `validation_prompts`");
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
  needs(p.chosen != none.chosen, "chosen_weight", {dpo});
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

// Tries to create the first missing directory of the path, and removes it again: the permissions of
// its parent do not tell whether the file system has room for it.
void check_out(const std::string& out) {
  if (out.empty()) return;
  std::string parent = out, child;  // the existing part of the path, and the part below it
  while (!is_folder(parent) && parent != "." && parent != "/") {
    if (is_file(parent)) {
      fail_field(ErrorKind::InvalidArgument, "out",
                 "{}{} is a file; expected a directory, or a name for a new one",
                 parent == out ? "" : out + ": ", parent);
    }
    child = parent;
    parent = parent_of(parent);
  }
  bool writes = ::access(parent.c_str(), W_OK | X_OK) == 0;
  if (writes && !child.empty()) {
    writes = system_calls().mkdir(child.c_str(), 0777) == 0;
    if (writes) system_calls().rmdir(child.c_str());
  }
  check_field(writes, "out",
              "{}: no files can be created in {}; expected a directory that can be written", out,
              parent);
}

void check_options(const TrainOptions& o) {
  check_data(o);
  check_fields(o);
  check_field(o.learning_rate >= 0 || o.learning_rate == -1, "learning_rate",
              "{}; expected 0 to 1000, or -1 for the recommended one", o.learning_rate);
  check_adapter_options(o.lora, o.from);
  check_distillation(o.distillation);
  check_optimizer(o);
  check_growth(o);
  check_reinforcement(o);
  check_field(
      o.freeze.empty() || o.lora.rank == 0, "freeze",
      "given with `lora`, which trains only the adapters of `lora_targets`; expected one of "
      "them");
  check_out(o.out);
}

}  // namespace fovea
