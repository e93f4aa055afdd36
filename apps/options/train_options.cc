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
constexpr int64_t kSteps = 1'000'000'000;  // a higher number would take years
constexpr size_t kConfigBytes = 1 << 20;   // far above the size of any Spec
constexpr int kConfigDepth = 64;           // deeper nesting could overflow the stack

void declare_data(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Data");
  table.add(places("DATA", {"--data", "--train-file"},
                   "text files, directories or JSON lines to train on", o.data));
  table.add(as("FILE...", files("--pairs", {},
                                "instead of DATA, for translation: a file of source lines and a "
                                "file of target lines, or one file of lines source<TAB>target",
                                o.pairs, 2)));
  table.add(as("FILE...", files("--validation-pairs", {}, "validation data in the same format",
                                o.validation_pairs, 2)));
  table.add(text("--source-prefix", {},
                 "--pairs: text prepended to every source, for multi-task models",
                 o.source_prefix));
  table.add(as("FILE...", files("--labels", {},
                                "instead of DATA, for classification: lines text<TAB>label, or "
                                "JSON lines with \"text\" and \"label\"",
                                o.labels, kMostFiles)));
  table.add(as("FILE...", files("--validation-labels", {}, "validation data in the same format",
                                o.validation_labels, kMostFiles)));
  table.add_config(choice("--objective", {},
                          "objective on text: predict the next token, masked tokens, or spans cut "
                          "out of the text; automatic = what fits the model",
                          request.objective,
                          {"automatic|auto", "next_token|next-token|text|clm", "masked|mlm",
                           "spans", "pairs|translation", "labels|classification"}));
  table.add(as("DIR", text("--out", {"-o", "--output", "--out-dir", "--output-dir"},
                           "output directory; an interrupted run in it is resumed", o.out)));
  table.add(as("DIR", text("--from", {"--pretrained-model", "--model-name-or-path"},
                           "model directory with the initial weights", o.from)));
  table.add_config(number("--validation", {"--validation-split"},
                          "fraction of the text, from its end, held out for validation",
                          o.validation, 0, 0.9));
  table.add_config(as(
      "NAME",
      text("--tokenizer", {"--tokenizer-name"},
           "char, bpe:SIZE, wordpiece:SIZE, unigram:SIZE, or the path of a model or tokenizer.json",
           o.tokenizer)));
  table.add_config(integer("--max-vocabulary", {},
                           "char: keep only the N most frequent characters; 0 = all",
                           o.max_vocabulary, 0, 10'000'000));
}

void declare_length(OptionTable& table, TrainOptions& o) {
  table.section("Length");
  table.add_config(integer("--steps", {"--iters", "--max-steps", "--max-iters", "--num-iterations"},
                           "optimiser steps", o.steps, 1, kSteps));
  table.add_config(integer("--batch",
                           {"-b", "--batch-size", "--mini-batch", "--device-batch-size",
                            "--per-device-train-batch-size"},
                           "sequences per forward pass", o.batch, 1, 65536));
  table.add_config(integer("--length", {},
                           "tokens per sequence of text; 0 = the context, with --from at most 1024",
                           o.length, 0, kSteps));
  table.add_config(integer("--batch-tokens", {"--max-tokens"},
                           "pairs: maximum tokens per forward pass, counted on the longer side",
                           o.batch_tokens, 1, 1 << 24));
  table.add_config(integer("--accumulate", {"--gradient-accumulation-steps"},
                           "forward passes per optimiser step", o.accumulate, 1, 65536));
  table.add_config(integer("--patience", {"--early-stopping"},
                           "stop after N evaluations without improvement; 0 = never", o.patience, 0,
                           kSteps));
  table.add_config(
      as("NAME", text("--best-by", {"--metric-for-best-model"},
                      "figure that selects the best model: loss, bleu or chrf (pairs), accuracy or "
                      "f1 (labels); automatic = bleu for pairs, else loss",
                      o.best_by)));
  table.add_config(integer("--bad-steps", {},
                           "stop after N consecutive steps with a non-finite loss", o.bad_steps, 1,
                           kSteps));
}

void declare_optimizer(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Optimiser (AdamW)");
  table.add_config(number("--learning-rate", {"--lr", "--learn-rate", "-l"}, "peak learning rate",
                          o.learning_rate, 0, 1000));
  table.add_config(number("--final-rate", {"--min-lr-ratio"},
                          "learning rate of the last step, as a fraction of the peak", o.final_rate,
                          0, 1));
  table.add_config(integer("--warmup", {"--warmup-steps", "--warmup-iters", "--lr-warmup"},
                           "steps of linear warm-up from 0 to the peak rate", o.warmup, 0, kSteps));
  table.add_config(choice("--schedule", {"--lr-scheduler-type"},
                          "learning-rate schedule after the warm-up", request.schedule,
                          {"cosine", "trapezoid", "constant", "inverse_root|inverse_sqrt"}));
  table.add_config(number("--decay-fraction", {"--warmdown-ratio"},
                          "trapezoid: final fraction of the steps, in which the rate falls",
                          o.decay_fraction, 0, 1));
  table.add_config(
      number("--beta1", {"--adam-beta1"}, "decay rate of the first moment", o.beta1, 0, 0.99999));
  table.add_config(
      number("--beta2", {"--adam-beta2"}, "decay rate of the second moment", o.beta2, 0, 0.99999));
  table.add_config(number("--epsilon", {"--adam-epsilon"}, "constant added to the denominator",
                          o.epsilon, 0, 1));
  table.add_config(number("--weight-decay", {}, "weight decay of matrices and token embeddings",
                          o.weight_decay, 0, 1000));
  table.add_config(number("--clip", {"--grad-clip", "--clip-norm", "--max-grad-norm"},
                          "maximum gradient norm; 0 = off", o.clip, 0, 1e6));
  table.add_config(number("--label-smoothing", {}, "probability spread over all labels",
                          o.label_smoothing, 0, 0.99));
  table.add_config(number("--mask", {"--mlm-probability"},
                          "masked, spans: fraction of tokens to mask", o.mask, 0.001, 0.9));
  table.add_config(
      number("--mean-span", {}, "spans: mean number of tokens per span", o.mean_span, 1, 100));
  table.add_config(integer("--average", {},
                           "evaluate and write the mean of the weights at N evaluations", o.average,
                           1, 100));
  table.add_config(choice("--average-of", {},
                          "average the weights of the last or of the best evaluations",
                          request.average_of, {"last", "best"}));
}

void declare_cadence(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Evaluation, samples and snapshots");
  table.add_config(integer(
      "--evaluate-every",
      {"--eval-every", "--eval-interval", "--eval-steps", "--steps-per-eval", "--valid-freq"},
      "steps between evaluations; 0 = only at the end", o.evaluate_every, 0, kSteps));
  table.add_config(integer("--evaluate-windows", {}, "windows of text per evaluation; 0 = all",
                           o.evaluate_windows, 0, kSteps));
  table.add_config(integer("--bleu-lines", {},
                           "held-out pairs translated per evaluation, for BLEU and chrF; 0 = none",
                           o.bleu_lines, 0, kSteps));
  table.add_config(integer("--sample-every", {}, "steps between generated samples; 0 = never",
                           o.sample_every, 0, kSteps));
  table.add_config(integer("--sample-tokens", {}, "tokens per sample", o.sample_tokens, 1, 65536));
  table.add_config(integer("--save-every", {"--save-steps", "--save-freq"},
                           "steps between snapshots; 0 = only at the end", o.save_every, 0,
                           kSteps));
  table.add_config(
      integer("--keep", {"--save-total-limit"}, "number of snapshots to keep", o.keep, 1, 10000));
  table.add(flag("--inspect", {},
                 "serve the inspector's page during training: curves, samples, and the attention "
                 "heads of each snapshot",
                 request.inspect));
}

void declare_machine(OptionTable& table, TrainRequest& request) {
  TrainOptions& o = request.options;
  table.section("Machine");
  table.add_config(choice("--dtype", {"--precision"}, "precision of matrix products",
                          request.precision,
                          {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16"}));
  table.add_config(integer("--seed", {"-s"},
                           "random seed of initial weights, data order and dropout", request.seed,
                           0, kAny));
  table.add(bytes("--memory-limit", {}, "refuse a run that needs more memory; 0 = the free memory",
                  o.memory_limit));
  table.add(
      bytes("--token-cache", {}, "tokenise larger texts into a memory-mapped file", o.token_cache));
  table.add(flag("--allow-change", {}, "resume even if data or options differ from the snapshot's",
                 o.allow_change));
}

Json read_config(const std::string& path) {
  const std::string content = read_text(path, kConfigBytes);
  const auto depth_guard = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kConfigDepth)
      throw UsageError(path + ": nested deeper than 64 levels; expected a Spec");
    return true;
  };
  try {
    Json config = Json::parse(content, depth_guard);
    if (!config.is_object())
      throw UsageError(path + ": not a JSON object; expected a Spec as printed by --dump-config");
    return config;
  } catch (const Json::parse_error& error) {
    throw UsageError(
        fmt::format("{}: not valid JSON (byte {}); expected a Spec as printed by --dump-config",
                    path, error.byte));
  } catch (const Json::out_of_range&) {
    throw UsageError(path +
                     ": a number is out of range; expected a Spec as printed by --dump-config");
  }
}

void apply_training(const std::string& path, const Json& values, OptionTable& table) {
  if (!values.is_object())
    throw UsageError(path + ": \"train\" is not an object; expected training options");
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
    throw UsageError(option.name + ": cannot be combined with --from, whose model determines it");
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
  spec.vocabulary = 0;  // of the text, not of the published model
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
  table.add(as(
      "NAME", text("--preset", {}, "model architecture and training options: " + presets, preset)));
  table.add(
      as("FILE", text("--config", {},
                      "JSON file with a Spec, and with training options under \"train\"", config)));
  declare_length(table, options);
  declare_optimizer(table, *this);
  declare_cadence(table, *this);
  declare_machine(table, *this);
  table.section("Model (overrides the preset)");
  add_spec_options(table, spec);
  table.add(number("--dropout", {}, "probability of embedding, attention and residual dropout",
                   dropout, 0, 0.95));
  table.section("Other actions");
  table.add(flag("--dry-run", {}, "print the plan of the run and exit", dry_run));
  table.add(flag("--dump-config", {}, "print the --config file of this run and exit", dump_config));
  table.show_only({"DATA",
                   "--pairs",
                   "--labels",
                   "--out",
                   "--from",
                   "--tokenizer",
                   "--preset",
                   "--steps",
                   "--batch",
                   "--learning-rate",
                   "--warmup",
                   "--sample-every",
                   "--inspect",
                   "--dtype",
                   "--seed",
                   "--context",
                   "--width",
                   "--layers",
                   "--heads",
                   "--dropout",
                   "--evaluate-every",
                   "--dry-run"});
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
