#include "fovea/train/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/gguf.h"
#include "base/nearest.h"
#include "cli/command.h"
#include "cli/reports/hosts_report.h"
#include "cli/reports/plan_report.h"
#include "fovea/core/error.h"
#include "fovea/model/hub.h"
#include "fovea/model/model_path.h"
#include "fovea/model/spec_effect.h"
#include "options/config_file.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr int64_t kByteVocabulary = 256;  // assumed if the vocabulary is unset

// Returns an option whose value is a number with an optional power of a thousand: "300B", "28T",
// "1.4e12".
Option scaled(std::string name, std::vector<std::string> aliases, std::string help, double& value) {
  static const std::map<std::string, double> powers = {{"", 1},     {"K", 1e3}, {"M", 1e6},
                                                       {"B", 1e9},  {"G", 1e9}, {"T", 1e12},
                                                       {"P", 1e15}, {"E", 1e18}};
  Option option;
  option.name = std::move(name);
  option.aliases = std::move(aliases);
  option.help = std::move(help);
  option.kind = Kind::text;
  option.placeholder = "X";
  option.expected = "a number such as 300B, 28T or 1.4e12";
  option.initial = "0";
  option.get = [&value] { return fmt::format("{}", value); };
  option.set = [&value, option](const std::string& typed) {
    double number = 0;
    const char* const end = typed.data() + typed.size();
    const auto [stop, error] = std::from_chars(typed.data(), end, number);
    const auto power = powers.find(std::string(stop, end));
    if (error != std::errc() || power == powers.end() || !(number >= 0))
      throw UsageError(fmt::format("{}: \"{}\" is not a number; expected {}", option.name, typed,
                                   option.expected));
    value = number * power->second;
  };
  return option;
}

// Returns the Spec of a preset, a model directory, a .gguf file or a JSON file.
model::Spec spec_of(const std::string& name) {
  const std::vector<std::string> presets = model::preset_names();
  if (std::find(presets.begin(), presets.end(), name) != presets.end()) return model::preset(name);
  const std::string model = model::find_model(name);
  if (std::filesystem::is_directory(model) || is_gguf(model)) return model::read_model_spec(model);
  if (std::filesystem::exists(name))
    return model::read_spec(without_sections(read_config(name)).dump(), name);
  if (name.find('/') != name.npos) model::require_model(name);
  const std::string near = nearest(name, presets);
  throw Error(
      ErrorKind::BadFile,
      fmt::format("{}: neither a preset nor a file nor a directory; {}", name,
                  near.empty() ? "expected one of " + fmt::format("{}", fmt::join(presets, ", "))
                               : "did you mean " + near + "?"));
}

bool has_weights(const std::string& path) {
  return is_gguf(path) || std::filesystem::exists(path + "/model.safetensors") ||
         std::filesystem::exists(path + "/model.safetensors.index.json");
}

class PlanCommand : public Command {
 public:
  PlanCommand()
      : Command(
            "plan PRESET|MODEL|SPEC.json [OPTIONS] | plan --budget FLOPS | plan --hours H",
            "Estimates the cost of a model without creating it: parameters by component, compute, "
            "memory, and the time and cost of training. Model options override the preset or "
            "file. With --budget or --hours: the size, the tokens and the expected loss of the "
            "model to train, by the published fit of Hoffmann et al. 2022.") {}

  void declare(OptionTable& table) override {
    table.add(positional(
        "PRESET|MODEL|SPEC.json", {"-m", "--model", "--preset"},
        "preset, model directory, .gguf file or Spec file; of weights, only the headers are read",
        model_));
    add_fields(
        table, options_,
        {{.field = "batch", .aliases = {"-b", "--batch-size"}, .section = "Work"},
         {"length", {"-n", "--sequence-length"}},
         {.field = "recompute", .placeholder = "[N]", .implied = "-1"},
         {.field = "tokens", .omitted = true},  // typed as 300B
         {.field = "speed", .omitted = true},
         {.field = "network", .omitted = true},
         {.field = "utilisation", .aliases = {"--utilization", "--mfu"}, .section = "Machine"}});
    table.section("Work");
    table.add(scaled("--tokens", {"--train-tokens"},
                     "training tokens, such as 300B; 0 = 20 per parameter", options_.tokens));
    table.section("Machine");
    table.add(scaled("--speed", {"--flops"}, "peak FLOP/s of one device, such as 28T; 0 = unknown",
                     options_.speed));
    table.add(scaled("--network", {}, "bits per second of each host, such as 1G; 0 = no limit",
                     options_.network));
    table.section("Budget, instead of a model");
    table.add(scaled("--budget", {}, "FLOPs of the whole training, such as 1e21", budget_));
    table.add(number("--hours", {},
                     "hours of training, with --speed, --utilisation and --devices; "
                     "without --speed, that of this machine is measured",
                     hours_, 0, 1e9));
    table.section("Model (overrides the preset or file)");
    add_fields(table, spec_, spec_spellings());
    table.unset_means("the model's");
    table.show_only({"PRESET|MODEL|SPEC.json", "--batch", "--length", "--source-length",
                     "--recompute", "--optimizer", "--moments", "--tokens", "--speed",
                     "--utilisation", "--devices", "--price", "--hosts", "--network", "--latency",
                     "--budget", "--hours"});
  }

  void apply(OptionTable& table) override {
    table.apply("PRESET|MODEL|SPEC.json");
    if (table.given("--budget") || table.given("--hours")) return apply_budget(table);
    if (model_.empty())
      throw UsageError("MODEL: not given; expected a preset, a model directory or a Spec file");
    spec_ = spec_of(model_);
    table.apply();
  }

  int run(const OptionTable& table) override {
    if (budget_ > 0 || hours_ > 0) {
      const train::BudgetPlan b =
          train::plan_budget(budget_ > 0 ? budget_ : train::flops_of_hours(hours_, options_));
      print(json ? budget_json(b) : budget_text(b));
      return 0;
    }
    if (spec_.vocabulary == 0 && (spec_.decoder || spec_.input.kind == model::InputKind::tokens)) {
      spec_.vocabulary = kByteVocabulary;
      note(fmt::format(
          "vocabulary: {} assumed, since it depends on the text; set --vocabulary to change it\n",
          kByteVocabulary));
    }
    const model::Spec spec = model::validated(spec_);
    for (const Option& option : table.all()) {
      const bool given = option.of_spec && !option.given.empty();
      const std::string path = given ? model::path_without_effect(spec_, option.field) : "";
      if (!path.empty())
        throw UsageError(
            fmt::format("{}: has no effect: the model does not use {}; expected a model that does",
                        option.name, path));
    }
    const train::Plan p = train::plan(spec, options_);
    const InferencePlans memory = inference_plans();
    std::string text = json ? plan_json(model_, spec, p, options_, memory)
                            : plan_text(model_, spec, p, options_, memory);
    if (options_.hosts > 1) text = with_hosts(text, p);
    print(text);
    return 0;
  }

 private:
  // Returns the memory by the choice of --dtype; empty without weights.
  InferencePlans inference_plans() const {
    InferencePlans plans;
    if (!has_weights(model_)) return plans;
    for (const auto& [name, precision] : {std::pair("stored", model::WeightPrecision::stored),
                                          {"fp32", model::WeightPrecision::fp32},
                                          {"bf16", model::WeightPrecision::bf16},
                                          {"int8", model::WeightPrecision::int8},
                                          {"int4", model::WeightPrecision::int4}})
      plans.emplace_back(name, train::inference_memory(model_, options_, precision));
    return plans;
  }

  // Adds the steps on several hosts to a plan.
  std::string with_hosts(const std::string& text, const train::Plan& p) const {
    const std::vector<train::HostsStep> steps = train::plan_hosts(p, options_);
    if (!json) return text + hosts_text(steps, static_cast<double>(p.batch * p.length));
    nlohmann::ordered_json all = nlohmann::ordered_json::parse(text);
    all["hosts"] = hosts_json(steps);
    return all.dump() + "\n";
  }

  void apply_budget(OptionTable& table) const {
    table.apply();
    if (!model_.empty()) throw UsageError("--budget, --hours: cannot be combined with MODEL");
    if (table.given("--budget") && table.given("--hours"))
      throw UsageError("--budget: cannot be combined with --hours");
    if (budget_ == 0 && hours_ == 0)
      throw UsageError("--budget, --hours: 0; expected a number above 0");
  }

  std::string model_;
  model::Spec spec_;
  train::PlanOptions options_;
  double budget_ = 0, hours_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<PlanCommand>(); }

}  // namespace fovea::cli
