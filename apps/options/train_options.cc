#include "options/train_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "fovea/core/error.h"
#include "fovea/model/hub.h"
#include "options/config_file.h"
#include "options/field_options.h"
#include "options/open_model.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

const Spellings& train_spellings() {
  static const Spellings all = {
      {.field = "data", .aliases = {"--data", "--train-file"}, .name = "DATA", .section = "Data"},
      {.field = "validation_chats", .placeholder = "FILE...", .most = kMostFiles},
      {.field = "pairs", .placeholder = "FILE...", .most = 2},
      {.field = "validation_pairs", .placeholder = "FILE...", .most = 2},
      {.field = "labels", .placeholder = "FILE...", .most = kMostFiles},
      {.field = "validation_labels", .placeholder = "FILE...", .most = kMostFiles},
      {.field = "objective",
       .values = {"automatic|auto", "next_token|next-token|text|clm", "masked|mlm",
                  "pairs|translation", "labels|classification", "chats|sft"}},
      {"out", {"-o", "--output", "--out-dir", "--output-dir"}, "", "DIR"},
      {"from", {"--pretrained-model", "--model-name-or-path"}, "", "DIR"},
      {"validation", {"--validation-split"}},
      {"tokenizer", {"--tokenizer-name"}, "", "NAME"},
      {"chat_template", {}, "", "NAME"},
      {.field = "steps",
       .aliases = {"--iters", "--max-steps", "--max-iters", "--num-iterations"},
       .section = "Length"},
      {"epochs", {"--num-epochs", "--num-train-epochs"}},
      {"batch",
       {"-b", "--batch-size", "--mini-batch", "--device-batch-size",
        "--per-device-train-batch-size"}},
      {"batch_tokens", {"--max-tokens"}},
      {"accumulate", {"--gradient-accumulation-steps"}},
      {"patience", {"--early-stopping"}},
      {"best_by", {"--metric-for-best-model"}, "", "NAME"},
      {.field = "learning_rate", .aliases = {"--lr", "--learn-rate", "-l"}, .section = "Optimiser"},
      {"final_rate", {"--min-lr-ratio"}},
      {"warmup", {"--warmup-steps", "--warmup-iters", "--lr-warmup"}},
      {.field = "schedule",
       .aliases = {"--lr-scheduler-type"},
       .values = {"trapezoid|wsd|warmup_stable_decay", "inverse_root|inverse_sqrt",
                  "linear|linear_decay"}},
      {"decay_fraction", {"--warmdown-ratio"}},
      {"optimizer", {"--optim"}},
      {"beta1", {"--adam-beta1"}},
      {"beta2", {"--adam-beta2"}},
      {"epsilon", {"--adam-epsilon"}},
      {"clip", {"--grad-clip", "--clip-norm", "--max-grad-norm"}},
      {"mask", {"--mlm-probability"}},
      {"lora", {"--lora-r", "--lora-rank"}, "", "[RANK]", "Adapters (LoRA)", 1, false, "16"},
      {"lora_targets", {"--lora-target-modules"}, "", "NAMES"},
      {"lora_plus", {"--loraplus-lr-ratio"}, "", "RATIO"},
      {.field = "freeze", .placeholder = "NAME...", .most = kMostFiles},
      {.field = "evaluate_every",
       .aliases = {"--eval-every", "--eval-interval", "--eval-steps", "--steps-per-eval",
                   "--valid-freq"},
       .section = "Evaluation, samples and snapshots"},
      {"save_every", {"--save-steps", "--save-freq"}},
      {"keep", {"--save-total-limit"}},
      {"shard_size", {"--max-shard-size"}, "", "SIZE"},
      {.field = "precision",
       .aliases = {"--precision"},
       .name = "--dtype",
       .section = "Machine",
       .values = {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16"}},
      {"seed", {"-s"}}};
  return all;
}

const Spellings& image_spellings() {
  static const Spellings all = {
      {.field = "images", .placeholder = "DIR|FILE...", .most = kMostFiles},
      {.field = "validation_images", .placeholder = "DIR|FILE...", .most = kMostFiles}};
  return all;
}

const Spellings& preference_spellings() {
  static const Spellings all = {
      {.field = "preference_beta", .aliases = {"--beta"}, .section = "Preferences"},
      {"preference_loss", {"--loss-type"}},
      {.field = "reference_free"},
      {.field = "desirable_weight"},
      {.field = "undesirable_weight"},
      {"chosen_weight", {"--rpo-alpha"}},
      {"orpo_lambda", {"--orpo-alpha"}},
      {.field = "simpo_gamma"},
      {"reference_cache", {}, "", "DIR"}};
  return all;
}

// Those of ppo and grpo, with all of their fields.
const Spellings& reinforcement_spellings() {
  static const Spellings all = {
      {.field = "validation_prompts", .placeholder = "FILE...", .most = kMostFiles},
      {.field = "evaluation_prompts", .section = "RL (ppo, grpo)"},
      {.field = "prompts"},
      {"generations", {"--num-generations"}},
      {"answer_tokens", {"--max-completion-length"}},
      {.field = "sampling_temperature"},
      {"batch_epochs", {"--num-ppo-epochs"}},
      {"minibatches", {"--num-mini-batches"}},
      {.field = "mask_truncated"},
      {.field = "rewards", .name = "--reward", .placeholder = "KIND...", .most = kMostFiles},
      {"reward_command", {}, "", "COMMAND"},
      {.field = "reward_timeout"},
      {.field = "advantage", .values = {"dr_grpo|dr-grpo"}},
      {.field = "policy_average", .values = {"dr_grpo|dr-grpo"}},
      {"clip_ratio", {"--cliprange"}},
      {.field = "clip_ratio_high"},
      {"kl_weight", {"--kl-coef"}},
      {.field = "kl_target"},
      {.field = "kl_horizon"},
      {.field = "gamma"},
      {.field = "gae_lambda"},
      {"clip_value", {"--cliprange-value"}},
      {"value_weight", {"--vf-coef"}},
      {.field = "whiten"},
      {.field = "score_clip"},
      {.field = "reward_clip"}};
  return all;
}

// The spellings of `fovea train`, which has no teacher, or of `fovea distil`, where the model
// determines these options.
Spellings spellings_of(bool distils) {
  Spellings all = train_spellings();
  all.push_back({.field = "problem_type",
                 .values = {"single_label|single_label_classification",
                            "multi_label|multi_label_classification"}});
  all.push_back({"class_weights", {"--class-weight"}, "", "WEIGHTS"});
  all.push_back({.field = "recompute",
                 .aliases = {"--gradient-checkpointing"},
                 .placeholder = "[N]",
                 .implied = "-1",
                 .values = {"-1|true", "0|false"}});
  for (const Spelling& each : reinforcement_spellings()) {
    const bool omitted = distils && each.field != "answer_tokens";
    all.push_back(omitted ? Spelling{.field = each.field, .omitted = true} : each);
  }
  const auto omit = [&](std::initializer_list<const char*> fields) {
    for (const char* field : fields) {
      std::erase_if(all, [&](const Spelling& each) { return each.field == field; });
      all.push_back({.field = field, .omitted = true});
    }
  };
  omit({"teacher"});  // the verb itself declares it
  if (!distils) {
    omit({"temperature", "distillation_alpha", "teacher_top_k", "teacher_cache", "on_policy",
          "divergence_beta"});
    for (const Spellings* more : {&image_spellings(), &preference_spellings()})
      all.insert(all.end(), more->begin(), more->end());
    return all;
  }
  for (const Spelling& each : preference_spellings()) omit({each.field.c_str()});
  omit({"images", "validation_images", "image_crop", "image_flip", "mixup", "rand_augment",
        "rand_augment_magnitude"});
  omit({"from", "tokenizer", "max_vocabulary"});
  all.push_back({.field = "temperature", .section = "Distillation"});
  all.push_back({"distillation_alpha", {"--kd-ratio"}, "--alpha"});
  all.push_back({"teacher_top_k", {}, "--top-k"});
  all.push_back({"teacher_cache", {}, "--cache", "DIR"});
  all.push_back(
      {.field = "on_policy", .aliases = {"--lmbda"}, .placeholder = "[SHARE]", .implied = "0.5"});
  all.push_back({.field = "divergence_beta", .name = "--beta"});
  return all;
}

// The training options that --config may not contain, since they belong to a single run or machine.
const std::vector<std::string>& outside_config() {
  static const std::vector<std::string> names = {"TEACHER",
                                                 "STUDENT",
                                                 "DATA",
                                                 "--validation-chats",
                                                 "--pairs",
                                                 "--validation-pairs",
                                                 "--source-prefix",
                                                 "--labels",
                                                 "--validation-labels",
                                                 "--images",
                                                 "--validation-images",
                                                 "--validation-prompts",
                                                 "--reward-command",
                                                 "--out",
                                                 "--from",
                                                 "--cache",
                                                 "--reference-cache",
                                                 "--memory-limit",
                                                 "--token-cache",
                                                 "--allow-change",
                                                 "--tensorboard",
                                                 "--csv"};
  return names;
}

// Sets the training options of a file; the command line and the environment take precedence.
void apply_training(const std::string& path, const std::string& verb, const Json& values,
                    const OptionTable& table) {
  const auto allowed = [](const Option& option) { return option.in_config; };
  for (const auto& [option, texts] : config_values(path, verb, values, table, allowed)) try {
      for (const std::string& text : texts) option->set(text);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("{}: {}: {}", path, verb, error.what()));
    }
}

void refuse_change_of_model(const TrainRequest& request, const OptionTable& table) {
  if (request.options.from.empty()) return;
  for (const Option& option : table.all()) {
    const bool dropout = option.name.find("dropout") != std::string::npos;
    if (!option.of_spec || option.given.empty() || dropout) continue;
    throw UsageError(fmt::format("{}: cannot be combined with {}, whose model determines it",
                                 option.name, request.distils ? "STUDENT" : "--from"));
  }
}

// A run that is shorter than the preset recommends has a shorter warm-up, and more evaluations per
// step.
void shorten_intervals(TrainRequest& request, const OptionTable& table) {
  const train::TrainOptions recommended = train::preset_training(request.preset);
  train::TrainOptions& o = request.options;
  const bool shorter = o.steps < recommended.steps;
  if (!table.given("--steps") || !shorter || !o.from.empty()) return;
  const auto shorten = [&](const char* name, int64_t train::TrainOptions::* field) {
    if (table.given(name) || o.*field <= 0 || o.*field != recommended.*field) return;
    o.*field = std::max<int64_t>(1, o.*field * o.steps / recommended.steps);
  };
  shorten("--warmup", &train::TrainOptions::warmup);
  shorten("--evaluate-every", &train::TrainOptions::evaluate_every);
}

// Returns the names of the fields that have an option in the command or the environment.
std::vector<std::string> fields_given(const OptionTable& table) {
  std::vector<std::string> fields;
  for (const Option& option : table.all()) {
    if (option.given.empty()) continue;
    if (option.name == "--dropout")
      for (const char* part : {"embedding", "attention", "residual"})
        fields.push_back(part + std::string("_dropout"));
    else
      fields.push_back(option.field);
  }
  return fields;
}

void apply_config(TrainRequest& request, OptionTable& table) {
  const Json config = read_config(request.config);
  const char* const verb = "train";
  if (config.contains(verb)) apply_training(request.config, verb, config[verb], table);
  Json spec = Json::parse(model::write_spec(request.spec));
  spec.merge_patch(without_sections(config));
  request.spec = model::read_spec(spec.dump(), request.config);
}

}  // namespace

void TrainRequest::take_preset(bool from_model) {
  spec = fovea::model::preset(preset);
  spec.vocabulary = 0;  // determined by the text, not by the published model
  options = from_model ? train::fine_tuning_options(preset) : train::preset_training(preset);
}

void TrainRequest::declare(OptionTable& table) {
  take_preset(false);
  options.learning_rate =
      train::fine_tuning_options(preset).learning_rate;  // the help shows both cases
  if (distils) {
    Option teacher = positional("TEACHER", {}, "model directory or .gguf file of the teacher",
                                options.distillation.teacher);
    teacher.field = "teacher";
    table.add(teacher);
    Option student =
        positional("STUDENT", {},
                   "model to train: its directory, or for a new one a preset or a JSON file "
                   "with a Spec",
                   student_);
    student.field = "from";
    table.add(student);
  }
  add_fields(table, options, spellings_of(distils));
  table.names_model(distils ? "STUDENT" : "--from");
  if (distils) table.names_model("TEACHER");
  table.set_in_config(outside_config());
  if (!distils) declare_model(table);
  table.section("Evaluation, samples and snapshots");
  table.add(flag("--inspect", {},
                 "serve the inspector's page during training: curves, samples, attention",
                 inspect));
  table.section("Model (overrides the preset)");
  add_fields(table, spec, spec_spellings());
  table.add(number("--dropout", {}, "probability of embedding, attention and residual dropout",
                   dropout, 0, 0.95));
  table.section("Other actions");
  table.add(flag("--dry-run", {}, "print the plan of the run and exit", dry_run));
  if (!distils) {
    table.add(
        flag("--show-example", {},
             "print the first conversation, pair of answers or prompt as the model reads it, with "
             "its trained part marked, and exit",
             show_example));
    table.add(
        flag("--dump-config", {}, "print the --config file of this run and exit", dump_config));
  }
  std::vector<std::string> shown = {"DATA",      "--pairs", "--labels", "--images",        "--out",
                                    "--lora",    "--steps", "--batch",  "--learning-rate", "--seed",
                                    "--context", "--width", "--layers", "--dry-run"};
  const auto also =
      distils ? std::vector<std::string>{"TEACHER", "STUDENT", "--temperature", "--alpha",
                                         "--top-k", "--cache", "--on-policy"}
              : std::vector<std::string>{"--from", "--tokenizer", "--preset", "--inspect"};
  shown.insert(shown.end(), also.begin(), also.end());
  table.show_only(shown);
}

// Adds the options that choose the model of `fovea train`.
void TrainRequest::declare_model(OptionTable& table) {
  table.section("Data");
  std::string presets;
  for (const std::string& name : model::preset_names())
    presets += (presets.empty() ? "" : ", ") + name;
  table.add(as(
      "NAME", text("--preset", {}, "model architecture and training options: " + presets, preset)));
  table.add(
      as("FILE", text("--config", {},
                      "JSON file with a Spec, and with training options under \"train\"", config)));
}

// Sets the preset or the config file if STUDENT names one.
void TrainRequest::choose_student(OptionTable& table) {
  table.apply("STUDENT");
  const std::vector<std::string> presets = model::preset_names();
  if (std::find(presets.begin(), presets.end(), student_) != presets.end()) {
    preset = student_;
  } else if (student_.ends_with(".json")) {
    config = student_;
  } else if (!student_.empty() && !std::filesystem::exists(student_)) {
    throw UsageError(fmt::format(
        "STUDENT: {} does not exist; expected a model directory, a .json file or one of the "
        "presets {}",
        student_, fmt::join(presets, ", ")));
  }
}

void TrainRequest::apply(OptionTable& table) {
  if (table.given("--epochs") && table.given("--steps"))
    throw UsageError("--epochs: cannot be combined with --steps; expected one of them");
  if (distils) {
    choose_student(table);
  } else {
    if (table.given("--pairs")) preset = "translate";
    table.apply("--preset");
    table.apply("--config");
  }
  take_preset(distils ? begins_with_model() : table.given("--from"));
  if (!config.empty()) apply_config(*this, table);
  if (table.given("--dropout")) {
    table.apply("--dropout");
    const auto rate = static_cast<float>(dropout);
    spec.dropout = {rate, rate, rate};
  }
  table.apply();
  if (table.given("--steps")) options.epochs = 0;  // that of --config
  shorten_intervals(*this, table);
  options.from = model::find_model(options.from);
  options.distillation.teacher = model::find_model(options.distillation.teacher);
  if (distils && begins_with_model()) options.from = student_;
  options.given = fields_given(table);
  refuse_change_of_model(*this, table);
}

namespace {

// Returns words, separated by spaces, as an array.
Json list_of(const std::string& words) {
  Json list = Json::array();
  std::istringstream in(words);
  for (std::string word; in >> word;) list.push_back(word);
  return list;
}

}  // namespace

std::string config_of(const TrainRequest& request, const OptionTable& table) {
  Json config = Json::parse(model::write_spec(request.spec));
  for (const Option& option : table.all()) {
    if (!option.in_config) continue;
    std::string key = option.name.substr(2);
    for (char& c : key) c = c == '-' ? '_' : c;
    const bool quoted = option.kind == Kind::choice || option.kind == Kind::text;
    config["train"][key] = option.kind == Kind::list ? list_of(option.get())
                           : quoted                  ? Json(option.get())
                                                     : Json::parse(option.get());
  }
  return config.dump(2) + "\n";
}

}  // namespace fovea::cli
