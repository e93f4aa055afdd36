#include "cli/verbs/embed_train.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/reports/train_report.h"
#include "fovea/infer/embed.h"
#include "jobs/ranks.h"
#include "options/field_options.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::optional<double> spearman(const std::vector<std::pair<std::string, double>>& metrics) {
  for (const auto& [name, value] : metrics)
    if (name == "spearman") return value;
  return std::nullopt;
}

}  // namespace

void EmbedderTrainRequest::declare(OptionTable& table) {
  table.section("Training an embedder");
  add_fields(table, training_,
             {{.field = "model", .omitted = true},  // the verb itself declares these three
              {.field = "out", .omitted = true},
              {.field = "kind", .omitted = true},
              {"data", {}, "--train", "FILE"},
              {"validation", {}, "", "FILE"},
              {"batch", {"-b", "--batch-size"}},
              {"learning_rate", {"--lr"}},
              {"margin", {"--triplet-margin", "--absolute-margin"}},
              {"regulariser", {"--regularizer"}},
              {.field = "guide", .placeholder = "DIR"},
              {.field = "lora", .placeholder = "[RANK]", .implied = "16"},
              {.field = "recompute",
               .aliases = {"--gradient-checkpointing"},
               .placeholder = "[N]",
               .implied = "-1"},
              {.field = "freeze", .placeholder = "NAME...", .most = kMostFiles},
              {"warmup", {"--warmup-ratio"}},
              {"dimensions", {}, "--matryoshka"}});
  table.names_model("--guide");
  table.add(flag("--dry-run", {}, "only print the plan of the training", dry_run_));
}

int EmbedderTrainRequest::run(const std::string& model, const std::string& out,
                              train::TrainedKind kind, bool json,
                              const std::vector<std::string>& arguments) {
  if (out.empty() && !dry_run_)
    throw UsageError("--out: not given; expected a directory for the new model");
  training_.model = model;
  training_.out = out;
  training_.kind = kind;
  if (dry_run_) {
    if (jobs::Ranks::only_helps()) return 0;
    const train::TrainPlan plan = train::plan_embedder_training(training_);
    print(json ? plan_json(plan, out) : plan_table(plan, out));
    return 0;
  }
  if (const jobs::Ranks* ranks = jobs::Ranks::current())
    training_.ranks = &ranks->communicator();
  else
    catch_signals();
  if (jobs::Ranks::only_helps()) return train::train_embedder(training_), 0;
  train::TrainPlan seen;
  TrainReport line;
  const train::TrainResult result = train::train_embedder(
      training_,
      [&](const train::TrainPlan& plan) {
        seen = plan;
        note(plan_table(plan, out));
        return !stop_requested();
      },
      [&](const train::TrainProgress& now) {
        line.step(now);
        return !stop_requested();
      },
      [&](train::Pause pause, double seconds) { line.pause(pause, seconds); });
  line.end();
  report(result, seen, json);
  if (training_.learn_pooling != train::LearnedPooling::none && !json)
    print("vector of a text: " + infer::Embedder::open(out).pooling() + "\n");
  if (!stop_requested()) return 0;
  note("Resume with:\n  " + resume_command("embed", arguments) + "\n");
  return stop_code();
}

infer::MiningOptions EmbedderTrainRequest::mining() const {
  infer::MiningOptions options;
  options.margin = training_.margin;
  options.relative_margin = training_.relative_margin;
  options.seed = training_.seed;
  return options;
}

void EmbedderTrainRequest::report(const train::TrainResult& r, const train::TrainPlan& plan,
                                  bool json) const {
  const std::optional<double> before = spearman(r.start_metrics), after = spearman(r.metrics);
  if (json) {
    nlohmann::ordered_json object = {{"out", training_.out},
                                     {"examples", plan.training_sequences},
                                     {"steps", r.step},
                                     {"loss", r.loss},
                                     {"spearman_before", number_or_null(before)},
                                     {"spearman", number_or_null(after)},
                                     {"seconds", r.seconds},
                                     {"interrupted", r.interrupted},
                                     {"stopped_early", r.stopped_early}};
    if (!r.kept_start.empty()) object["kept_start"] = r.kept_start;
    return print(object.dump() + "\n");
  }
  print(fmt::format("{} steps over {} examples, loss {:.4f}\n", r.step, plan.training_sequences,
                    r.loss));
  if (!r.kept_start.empty())
    return print("The model is in " + printable(training_.out) + kept_start_text(r) + "\n");
  if (before && after) print(fmt::format("Spearman {:.2f}, before {:.2f}\n", *after, *before));
}

}  // namespace fovea::cli
