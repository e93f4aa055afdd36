#include "options/train_options.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "fovea/error.h"
#include "options/open_model.h"
#include "options/spec_options.h"
#include "terminal/read_text.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
constexpr int64_t kSteps = 1'000'000'000;  // more would take years anywhere
constexpr size_t kConfigBytes = 1 << 20;   // far above what a Spec needs
constexpr int kConfigDepth = 64;           // JSON nested deeper is an attack on the stack

void declare_data(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.add(places("DATA", {"--data", "--train-file"},
                   "text files, folders or JSON lines to learn from", o.data));
  table.add(files("--pairs", {},
                  "instead of DATA, to learn to translate: a file of sources and one of targets, "
                  "line by line, or one with a tab between the two",
                  o.pairs, 2));
  table.add(files("--validation-pairs", {}, "the same, to measure with", o.validation_pairs, 2));
  table.add(text("--source-prefix", {},
                 "--pairs: in front of every source, for models of many tasks", o.source_prefix));
  table.add(files("--labels", {},
                  "instead of DATA, to learn to classify: lines of a text, a tab and its label, or "
                  "JSON lines with \"text\" and \"label\"",
                  o.labels, kMostFiles));
  table.add(files("--validation-labels", {}, "the same, to measure with", o.validation_labels,
                  kMostFiles));
  table.add_config(choice("--objective", {},
                          "what is learnt of a text: its next token, tokens that were masked, or "
                          "spans that were cut out; automatic: what suits the model",
                          request.objective,
                          {"automatic|auto", "next_token|next-token|text|clm", "masked|mlm",
                           "spans", "pairs|translation", "labels|classification"}));
  table.add(text("--out", {"-o", "--output", "--out-dir", "--output-dir"},
                 "directory for the model; a run that was interrupted there is resumed", o.out));
  table.add(text("--from", {"--pretrained-model", "--model-name-or-path"},
                 "model directory to start from instead of random weights", o.from));
  table.add_config(number("--validation", {"--validation-split"},
                          "the text's last part, held out to measure with", o.validation, 0, 0.9));
  table.add_config(text("--tokenizer", {"--tokenizer-name"},
                        "char, bpe:SIZE, wordpiece:SIZE, unigram:SIZE, or a model or "
                        "tokenizer.json to take it from",
                        o.tokenizer));
  table.add_config(integer("--max-vocabulary", {},
                           "char: keep the most frequent characters only; 0 = all",
                           o.max_vocabulary, 0, 10'000'000));
}

void declare_length(OptionTable& table, TrainOptions& o) {
  table.section("Length");
  table.add_config(integer("--steps", {"--iters", "--max-steps", "--max-iters", "--num-iterations"},
                           "optimiser steps", o.steps, 1, kSteps));
  table.add_config(integer("--batch",
                           {"-b", "--batch-size", "--mini-batch", "--device-batch-size",
                            "--per-device-train-batch-size"},
                           "sequences in one forward pass", o.batch, 1, 65536));
  table.add_config(integer("--length", {},
                           "tokens of a text read at once; 0 = the context, with --from at most "
                           "1024",
                           o.length, 0, kSteps));
  table.add_config(integer("--batch-tokens", {"--max-tokens"},
                           "pairs: tokens of the longer side in one forward pass", o.batch_tokens,
                           1, 1 << 24));
  table.add_config(integer("--accumulate", {"--gradient-accumulation-steps"},
                           "forward passes in one optimiser step", o.accumulate, 1, 65536));
  table.add_config(integer("--patience", {"--early-stopping"},
                           "evaluations without improvement before it stops; 0 = never", o.patience,
                           0, kSteps));
  table.add_config(text("--best-by", {"--metric-for-best-model"},
                        "what the best model and --patience go by: loss, bleu or chrf (of pairs), "
                        "accuracy or f1 (of labels); automatic: bleu of pairs, else loss",
                        o.best_by));
  table.add_config(integer("--bad-steps", {},
                           "steps in a row with a non-finite loss before it stops", o.bad_steps, 1,
                           kSteps));
}

void declare_optimizer(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Optimiser (AdamW)");
  table.add_config(number("--learning-rate", {"--lr", "--learn-rate", "-l"}, "at its peak",
                          o.learning_rate, 0, 1000));
  table.add_config(number("--final-rate", {"--min-lr-ratio"},
                          "the last step's rate as a fraction of the peak", o.final_rate, 0, 1));
  table.add_config(integer("--warmup", {"--warmup-steps", "--warmup-iters", "--lr-warmup"},
                           "steps from rate 0 to the peak", o.warmup, 0, kSteps));
  table.add_config(choice("--schedule", {"--lr-scheduler-type"}, "how the rate falls",
                          request.schedule,
                          {"cosine", "trapezoid", "constant", "inverse_root|inverse_sqrt"}));
  table.add_config(number("--decay-fraction", {"--warmdown-ratio"},
                          "trapezoid: the last part of the steps, in which the rate falls",
                          o.decay_fraction, 0, 1));
  table.add_config(number("--beta1", {"--adam-beta1"}, "AdamW's first decay", o.beta1, 0, 0.99999));
  table.add_config(
      number("--beta2", {"--adam-beta2"}, "AdamW's second decay", o.beta2, 0, 0.99999));
  table.add_config(
      number("--epsilon", {"--adam-epsilon"}, "AdamW's divisor floor", o.epsilon, 0, 1));
  table.add_config(number("--weight-decay", {}, "of the matrices", o.weight_decay, 0, 1000));
  table.add_config(number("--clip", {"--grad-clip", "--clip-norm", "--max-grad-norm"},
                          "the gradient's norm at most; 0 = off", o.clip, 0, 1e6));
  table.add_config(number("--label-smoothing", {},
                          "weight of all labels together beside the right one", o.label_smoothing,
                          0, 0.99));
  table.add_config(number("--mask", {"--mlm-probability"},
                          "masked, spans: the part of the tokens that is asked for", o.mask, 0.001,
                          0.9));
  table.add_config(
      number("--mean-span", {}, "spans: tokens in one, on the average", o.mean_span, 1, 100));
  table.add_config(integer("--average", {},
                           "evaluate and write the mean of the weights at so many evaluations",
                           o.average, 1, 100));
  table.add_config(choice("--average-of", {}, "which evaluations these are: the last or the best",
                          request.average_of, {"last", "best"}));
}

void declare_cadence(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Evaluating, sampling, saving");
  table.add_config(integer(
      "--evaluate-every",
      {"--eval-every", "--eval-interval", "--eval-steps", "--steps-per-eval", "--valid-freq"},
      "steps between evaluations; 0 = only at the end", o.evaluate_every, 0, kSteps));
  table.add_config(integer("--evaluate-windows", {}, "windows that one evaluation reads; 0 = all",
                           o.evaluate_windows, 0, kSteps));
  table.add_config(integer("--bleu-lines", {},
                           "held-out pairs that one evaluation translates, for BLEU and chrF; 0 = "
                           "none",
                           o.bleu_lines, 0, kSteps));
  table.add_config(integer("--sample-every", {}, "steps between samples of its writing; 0 = never",
                           o.sample_every, 0, kSteps));
  table.add_config(integer("--sample-tokens", {}, "length of a sample", o.sample_tokens, 1, 65536));
  table.add_config(integer("--save-every", {"--save-steps", "--save-freq"},
                           "steps between snapshots; 0 = only at the end", o.save_every, 0,
                           kSteps));
  table.add_config(integer("--keep", {"--save-total-limit"}, "snapshots kept", o.keep, 1, 10000));
  table.add(flag("--inspect", {},
                 "serve the inspector's page meanwhile: curves, samples, and the heads of each "
                 "snapshot as they form",
                 request.inspect));
}

void declare_machine(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Machine");
  table.add_config(choice("--dtype", {"--precision"}, "precision of matrix products",
                          request.precision,
                          {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16"}));
  table.add_config(
      integer("--seed", {"-s"}, "of weights, data order and dropout", request.seed, 0, kAny));
  table.add(bytes("--memory-limit", {}, "refuse a run that needs more; 0 = what is free",
                  o.memory_limit));
  table.add(
      bytes("--token-cache", {}, "more tokens than this go through a mapped file", o.token_cache));
  table.add(flag("--allow-change", {}, "resume although data or options differ from the snapshot's",
                 o.allow_change));
}

Json read_config(const std::string& path) {
  const std::string content = read_text(path, kConfigBytes);
  const auto depth_guard = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kConfigDepth)
      throw UsageError(path + ": JSON nested deeper than 64 levels; expected a Spec");
    return true;
  };
  try {
    Json config = Json::parse(content, depth_guard);
    if (!config.is_object())
      throw UsageError(path + ": not a JSON object; expected a Spec such as --dump-config prints");
    return config;
  } catch (const Json::parse_error& error) {
    throw UsageError(fmt::format(
        "{}: not JSON (byte {}); expected a Spec such as --dump-config prints", path, error.byte));
  } catch (const Json::out_of_range&) {
    throw UsageError(path +
                     ": a number is out of range; expected a Spec such as --dump-config prints");
  }
}

void apply_training(const std::string& path, const Json& values, OptionTable& table) {
  if (!values.is_object())
    throw UsageError(path + ": \"train\" is not an object; expected options of training");
  std::vector<std::string> names;
  for (const Option& option : table.all()) {
    if (option.in_config) names.push_back(option.name);
  }
  for (const auto& [key, value] : values.items()) {
    std::string name = "--" + key;
    for (char& c : name) c = c == '_' ? '-' : c;
    const Option* const option = table.find(name);
    if (!option || !option->in_config) {
      const std::string near = nearest(name, names);
      throw UsageError(
          fmt::format("{}: train.{}: unknown key; {}", path, key,
                      near.empty() ? "see --dump-config" : "did you mean " + near.substr(2) + "?"));
    }
    try {
      option->set(value.is_string() ? value.get<std::string>() : value.dump());
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: train: {}", path, error.what()));
    }
  }
}

void refuse_change_of_model(const TrainOptions& options, const OptionTable& table) {
  if (options.from.empty()) return;
  for (const Option& option : table.all()) {
    const bool dropout = option.name.find("dropout") != std::string::npos;
    if (!option.of_spec || option.given.empty() || dropout) continue;
    throw UsageError(option.name +
                     ": given beside --from, whose model decides it; expected one of them");
  }
}

void apply_config(TrainRequest& request, OptionTable& table) {
  Json config = read_config(request.config);
  if (config.contains("train")) apply_training(request.config, config["train"], table);
  config.erase("train");
  Json spec = Json::parse(write_spec(request.spec));
  spec.merge_patch(config);
  request.spec = read_spec(spec.dump(), request.config);
}

}  // namespace

void TrainRequest::take_preset() {
  spec = fovea::preset(preset);
  spec.vocabulary = 0;  // the text's, not the published model's
  options = preset_training(preset);
  objective = static_cast<int>(options.objective);
  seed = static_cast<int64_t>(options.seed);
  schedule = static_cast<int>(options.schedule);
  precision = static_cast<int>(options.precision);
  average_of = static_cast<int>(options.average_of);
}

void TrainRequest::declare(OptionTable& table) {
  take_preset();
  declare_data(table, *this);
  std::string presets;
  for (const std::string& name : preset_names()) presets += (presets.empty() ? "" : ", ") + name;
  table.add(text("--preset", {}, "model and training to begin with: " + presets, preset));
  table.add(
      text("--config", {}, "JSON file: a Spec, and options of training under \"train\"", config));
  declare_length(table, options);
  declare_optimizer(table, *this);
  declare_cadence(table, *this);
  declare_machine(table, *this);
  table.section("Model (overrides the preset)");
  add_spec_options(table, spec);
  table.add(number("--dropout", {}, "all three dropouts at once", dropout, 0, 0.95));
  table.section("Instead of training");
  table.add(flag("--dry-run", {}, "print the plan and stop", dry_run));
  table.add(flag("--dump-config", {}, "print what --config would hold for this run, and stop",
                 dump_config));
}

void TrainRequest::apply(OptionTable& table) {
  if (table.given("--pairs")) preset = "translate";
  table.apply("--preset");
  table.apply("--config");
  take_preset();
  if (!config.empty()) apply_config(*this, table);
  if (table.given("--dropout")) {
    table.apply("--dropout");
    spec.dropout = {dropout, dropout, dropout};
  }
  table.apply();
  refuse_change_of_model(options, table);
  options.seed = static_cast<uint64_t>(seed);
  options.schedule = static_cast<Schedule>(schedule);
  options.precision = static_cast<Precision>(precision);
  options.objective = static_cast<Objective>(objective);
  options.average_of = static_cast<Averaged>(average_of);
}

std::string config_of(const TrainRequest& request, const OptionTable& table) {
  Json config = Json::parse(write_spec(request.spec));
  for (const Option& option : table.all()) {
    if (!option.in_config) continue;
    std::string key = option.name.substr(2);
    for (char& c : key) c = c == '-' ? '_' : c;
    const bool quoted = option.kind == Kind::choice || option.kind == Kind::text;
    config["train"][key] = quoted ? Json(option.get()) : Json::parse(option.get());
  }
  return config.dump(2) + "\n";
}

}  // namespace fovea::cli
