#include "cli/verbs/embed_train.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// Options that require --train.
constexpr std::array kEmbedderTraining = {
    "--validation",   "--epochs",      "--batch",      "--learning-rate",  "--warmup",
    "--weight-decay", "--temperature", "--matryoshka", "--evaluate-every", "--seed"};

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
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
  table.add(integer("--seed", {}, "random seed of the order of examples", seed_, 0, INT64_MAX));
}

void EmbedderTrainRequest::refuse_without_train(const OptionTable& table) {
  table.refuse_training(kEmbedderTraining);
}

int EmbedderTrainRequest::run(const std::string& model, const std::string& out, bool json) {
  if (out.empty()) throw UsageError("--out: not given; expected a directory for the new model");
  training_.model = model;
  training_.out = out;
  training_.seed = static_cast<uint64_t>(seed_);
  catch_signals();
  ProgressLine line;
  const EmbedderResult r = train_embedder(training_, [&](const EmbedderProgress& now) {
    const std::string state =
        fmt::format("step {} of {}, loss {:.4f}", now.step, now.steps, now.loss);
    if (now.spearman)
      line.above(fmt::format("step {}: Spearman {:.2f}\n", now.step, *now.spearman));
    line.show(static_cast<double>(now.step) / static_cast<double>(now.steps), state, state);
    return !asked_to_stop();
  });
  line.clear();
  if (json) {
    print(nlohmann::ordered_json({{"out", out},
                                  {"examples", r.examples},
                                  {"steps", r.steps},
                                  {"loss", r.loss},
                                  {"spearman_before", number_or_null(r.spearman_before)},
                                  {"spearman", number_or_null(r.spearman)},
                                  {"seconds", r.seconds}})
              .dump() +
          "\n");
  } else {
    print(fmt::format("{} steps over {} examples, loss {:.4f}\n", r.steps, r.examples, r.loss));
    if (r.spearman)
      print(fmt::format("Spearman {:.2f}, before training {:.2f}\n", *r.spearman,
                        *r.spearman_before));
  }
  return asked_to_stop() ? stop_code() : 0;
}

}  // namespace fovea::cli
