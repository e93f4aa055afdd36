#include "loop/check_options.h"

#include <unistd.h>

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "loop/adapters.h"
#include "loop/examples_task.h"

namespace fovea::train {

void check_data(const TrainOptions& o) {
  const int kinds = (o.data.empty() ? 0 : 1) + (o.pairs.empty() ? 0 : 1) +
                    (o.labels.empty() ? 0 : 1) + (o.images.empty() ? 0 : 1);
  check_field(kinds > 0, "data",
              "no file; expected text files, folders or JSON lines, or `pairs`, `labels` or "
              "`images`");
  check_field(kinds == 1, "data",
              "several kinds of data; expected only one of `data`, `pairs`, `labels` and `images`");
  check_field(o.images.empty() || o.distillation.teacher.empty(), "teacher",
              "given with `images`; expected texts");
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

void check_growth(const TrainOptions& o) {
  check_field(o.accumulate_from <= o.accumulate, "accumulate_from",
              "{}; expected at most {}, the number in `accumulate`", o.accumulate_from,
              o.accumulate);
}

void check_reinforcement(const TrainOptions& o) {
  const ReinforcementOptions& r = o.reinforcement;
  const bool grpo = o.objective == Objective::grpo, used = grpo || o.objective == Objective::ppo;
  if (!used) return;
  check_field(!o.from.empty(), "from", "not given; expected the model that generates the answers");
  check_field(!r.rewards.empty() || !r.reward_command.empty() || r.reward || r.environment,
              "rewards", "none; expected at least one, or `reward_command`");
  check_field(!grpo || r.generations > 1, "generations",
              "{}; expected at least 2 for grpo, which compares the answers to a prompt",
              r.generations);
  check_field(r.minibatches <= r.prompts * r.generations, "minibatches",
              "{}; expected at most {}, the answers of a batch", r.minibatches,
              r.prompts * r.generations);
  check_field(o.accumulate == 1, "accumulate",
              "{}; expected 1: `batch` limits the answers in one forward pass", o.accumulate);
  check_field(o.distillation.teacher.empty(), "teacher",
              "given with ppo or grpo; expected another objective");
  check_field(o.validation_chats.empty(), "validation_chats",
              "given with ppo or grpo; expected `validation_prompts`");
}

}  // namespace

void check_loss(const TrainOptions& o, Objective objective) {
  using enum Objective;
  if (!o.loss) return;
  const bool suits = objective == next_token || objective == masked || objective == spans ||
                     objective == pairs || objective == chats ||
                     (objective == labels && o.images.empty());
  check_field(suits, "loss",
              "does not suit the objective {}; expected text, pairs, chats or labels of texts",
              name_of(objective));
  check_field(o.distillation.teacher.empty() && o.label_smoothing == 0, "loss",
              "given with a teacher or label smoothing; expected one of them");
}

void check_preferences(const TrainOptions& o, Objective objective) {
  using enum Objective;
  const PreferenceOptions& p = o.preferences;
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
  check_growth(o);
  check_reinforcement(o);
  const double written = o.distillation.on_policy;
  check_field(written >= 0 || written == -1, "on_policy",
              "{}; expected 0 to 1, or -1 for a loss with labels", written);
  check_field(
      o.freeze.empty() || o.lora.rank == 0, "freeze",
      "given with `lora`, which trains only the adapters of `lora_targets`; expected one of "
      "them");
  check_field(o.sharing.sync_every == 1 || o.sharing.shard == Sharded::nothing, "shard",
              "given with `sync_every`, whose steps need all moments; expected one of them");
  check_field(o.sharing.sync_every == 1 || o.moments == MomentPrecision::fp32, "moments",
              "8bit with `sync_every`, which averages them; expected fp32");
  check_field(o.ranks != nullptr ||
                  (o.sharing.sync_every == 1 && o.sharing.gradients == GradientPrecision::fp32),
              o.sharing.sync_every > 1 ? "sync_every" : "gradients",
              "given to one process; expected several, started by mpirun or srun");
  check_out(o.out);
}

std::string choose_best_by(const std::string& metric, const infer::EvaluationTask& task) {
  if (metric == "automatic") return task.decisive;
  std::vector<std::string> names;
  for (const infer::Metric& each : task.metrics) names.push_back(each.name);
  names.emplace_back("loss");
  check_field(std::find(names.begin(), names.end(), metric) != names.end(), "best_by",
              "{} is not measured in this run; expected {}", metric, fmt::join(names, " or "));
  return metric;
}

}  // namespace fovea::train
