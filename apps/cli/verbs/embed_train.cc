#include "cli/verbs/embed_train.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "cli/reports/train_report.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// Options that require --train.
constexpr std::array kEmbedderTraining = {
    "--validation",   "--epochs",      "--batch",        "--learning-rate",  "--warmup",
    "--weight-decay", "--temperature", "--matryoshka",   "--evaluate-every", "--save-every",
    "--keep",         "--patience",    "--allow-change", "--dry-run",        "--seed"};

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

std::optional<double> spearman(const std::vector<std::pair<std::string, double>>& figures) {
  for (const auto& [name, value] : figures)
    if (name == "spearman") return value;
  return std::nullopt;
}

}  // namespace

void EmbedderTrainRequest::declare(OptionTable& table) {
  EmbedderTraining& t = training_;
  constexpr int64_t kMost = 1'000'000'000;
  table.section("Training an embedder");
  table.add(as("FILE", text("--train", {},
                            "training examples: pairs, triplets or scored pairs of texts (CSV, TSV "
                            "or JSON lines); --out is the directory of the new model",
                            t.data)));
  table.add(as("FILE", text("--validation", {}, "scored pairs for validation", t.validation)));
  table.add(integer("--epochs", {}, "passes over the examples", t.epochs, 1, kMost));
  table.add(integer("--batch", {"-b", "--batch-size"}, "examples per step", t.batch, 1, 1 << 20));
  table.add(number("--learning-rate", {"--lr"}, "peak learning rate", t.learning_rate, 0, 1));
  table.add(number("--warmup", {"--warmup-ratio"}, "fraction of the steps in which the rate rises",
                   t.warmup, 0, 1));
  table.add(number("--weight-decay", {}, "weight decay of matrices and token embeddings",
                   t.weight_decay, 0, 1));
  table.add(number("--temperature", {}, "divisor of the cosines (pairs, triplets)", t.temperature,
                   1e-4, 100));
  table.add(integers("--matryoshka", {}, "also train vectors truncated to these widths",
                     t.dimensions, 1, 1 << 20));
  table.add(integer("--evaluate-every", {},
                    "steps between evaluations; 0 = only before and after training",
                    t.evaluate_every, 0, kMost));
  table.add(integer("--save-every", {}, "steps between snapshots; 0 = only at the end",
                    t.save_every, 0, kMost));
  table.add(integer("--keep", {}, "number of snapshots to keep", t.keep, 1, 1'000'000));
  table.add(integer("--patience", {},
                    "stop after this many evaluations without improvement and keep the best "
                    "model; 0 = never, and keep the newest",
                    t.patience, 0, kMost));
  table.add(flag("--allow-change", {}, "resume although data or options differ from the run's",
                 t.allow_change));
  table.add(flag("--dry-run", {}, "only print the plan of the training", dry_run_));
  table.add(integer("--seed", {}, "random seed of the order of examples", seed_, 0, INT64_MAX));
}

void EmbedderTrainRequest::refuse_without_train(const OptionTable& table) {
  table.refuse_training(kEmbedderTraining);
}

int EmbedderTrainRequest::run(const std::string& model, const std::string& out, bool json,
                              const std::vector<std::string>& arguments) {
  if (out.empty() && !dry_run_)
    throw UsageError("--out: not given; expected a directory for the new model");
  training_.model = model;
  training_.out = out;
  training_.seed = static_cast<uint64_t>(seed_);
  if (dry_run_) {
    const TrainPlan plan = plan_embedder_training(training_);
    print(json ? plan_json(plan, out) : plan_table(plan, out));
    return 0;
  }
  catch_signals();
  TrainPlan seen;
  TrainReport line;
  const TrainResult result = train_embedder(
      training_,
      [&](const TrainPlan& plan) {
        seen = plan;
        note(plan_table(plan, out));
        return !asked_to_stop();
      },
      [&](const TrainProgress& now) {
        line.step(now);
        return !asked_to_stop();
      });
  line.end();
  report(result, seen, json);
  if (!asked_to_stop()) return 0;
  note("Resume with:\n  " + resume_command("embed", arguments) + "\n");
  return stop_code();
}

void EmbedderTrainRequest::report(const TrainResult& r, const TrainPlan& plan, bool json) const {
  const std::optional<double> before = spearman(r.start_figures), after = spearman(r.figures);
  if (json) {
    print(nlohmann::ordered_json({{"out", training_.out},
                                  {"examples", plan.training_sequences},
                                  {"steps", r.step},
                                  {"loss", r.loss},
                                  {"spearman_before", number_or_null(before)},
                                  {"spearman", number_or_null(after)},
                                  {"seconds", r.seconds},
                                  {"interrupted", r.interrupted},
                                  {"stopped_early", r.stopped_early}})
              .dump() +
          "\n");
    return;
  }
  print(fmt::format("{} steps over {} examples, loss {:.4f}\n", r.step, plan.training_sequences,
                    r.loss));
  if (before && after) print(fmt::format("Spearman {:.2f}, before {:.2f}\n", *after, *before));
}

}  // namespace fovea::cli
