#include "cli/reports/train_report.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns null for NaN and infinity, which JSON lacks.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

std::string plan_row(const char* name, const std::string& value) {
  return fmt::format("  {:<12}{}\n", name, value);
}

std::string model_row(const train::TrainPlan& plan) {
  const auto &encoder = plan.spec.encoder, &decoder = plan.spec.decoder;
  const model::StackSpec& stack = decoder ? *decoder : *encoder;
  const std::string layers = encoder && decoder
                                 ? fmt::format("{} + {}", encoder->layers, decoder->layers)
                                 : fmt::format("{}", stack.layers);
  const std::string trained =
      plan.trained_parameters == plan.parameters
          ? ""
          : fmt::format(" ({} trained)", amount(static_cast<double>(plan.trained_parameters)));
  return fmt::format("{} parameters{}: {} layers, {} heads, width {}, context {}, vocabulary {}",
                     amount(static_cast<double>(plan.parameters)), trained, layers,
                     stack.attention.heads, plan.spec.width, plan.spec.context, plan.vocabulary);
}

std::string data_row(const train::TrainPlan& plan) {
  const auto count = [](int64_t n) { return amount(static_cast<double>(n)); };
  if (plan.training_sequences == 0) {
    return plan_row("text",
                    fmt::format("{} tokens for training, {} held out", count(plan.training_tokens),
                                count(plan.validation_tokens)));
  }
  return plan_row(
      name_of(plan.objective),
      fmt::format("{} for training ({} tokens), {} held out", count(plan.training_sequences),
                  count(plan.training_tokens), count(plan.validation_sequences)));
}

std::string rate_row(const train::TrainPlan& plan) {
  const std::string why = plan.rate_reason.empty() ? "" : fmt::format(" ({})", plan.rate_reason);
  const bool falls =
      plan.schedule == "cosine" || plan.schedule == "linear" || plan.schedule == "trapezoid";
  return fmt::format("{:g}{}; {}{}, warm-up of {} step{}", plan.learning_rate, why, plan.schedule,
                     falls ? fmt::format(" to {:g}", plan.learning_rate * plan.final_rate) : "",
                     plan.warmup, plan.warmup == 1 ? "" : "s");
}

std::string memory_row(const train::TrainPlan& plan) {
  const auto size = [](uint64_t bytes) { return memory(static_cast<double>(bytes)); };
  return fmt::format("{} of {}: weights {}, optimiser {}, activations {}, process {}",
                     size(plan.total_bytes), size(plan.available_bytes), size(plan.weight_bytes),
                     size(plan.optimizer_bytes), size(plan.activation_bytes),
                     size(plan.process_bytes));
}

std::string sample_block(const std::string& sample) {
  std::string block, line;
  const auto end_line = [&] {
    block += (block.empty() ? "" : "\n") + dim("  | " + line);
    line.clear();
  };
  for (const char c : printable(sample)) {
    if (c == '\n') {
      end_line();
    } else {
      line += c;
    }
  }
  if (!line.empty()) end_line();
  return block;
}

}  // namespace

std::string plan_table(const train::TrainPlan& plan, const std::string& out) {
  const int64_t left = plan.steps - plan.first_step;
  std::string table = plan_row("model", model_row(plan));
  table += plan_row(
      "from", plan.from + (plan.first_step > 0 ? fmt::format(", step {}", plan.first_step) : ""));
  table += data_row(plan);
  const std::string length =
      plan.length_reason.empty() ? "" : fmt::format(": {}", plan.length_reason);
  table += plan_row(
      "steps", fmt::format("{} of {} tokens each ({:.1f} epochs{})", left,
                           amount(static_cast<double>(plan.tokens_per_step)), plan.epochs, length));
  table += plan_row("rate", rate_row(plan));
  table += plan_row("machine", fmt::format("{} thread{}, {}, {}", plan.threads,
                                           plan.threads == 1 ? "" : "s", plan.precision, plan.isa));
  table += plan_row("memory", memory_row(plan));
  table +=
      plan_row("time", fmt::format("about {}, of which {} for evaluations, samples and snapshots; "
                                   "{} tokens/s",
                                   duration(plan.seconds), duration(plan.pause_seconds),
                                   amount(plan.tokens_per_second)));
  if (!out.empty()) table += plan_row("out", printable(out));
  for (const std::string& text : plan.notes) table += plan_row("note", printable(text));
  return table;
}

std::string plan_json(const train::TrainPlan& plan, const std::string& out) {
  const Json json = {{"spec", Json::parse(model::write_spec(plan.spec))},
                     {"from", plan.from},
                     {"out", out},
                     {"first_step", plan.first_step},
                     {"steps", plan.steps},
                     {"parameters", plan.parameters},
                     {"trained_parameters", plan.trained_parameters},
                     {"objective", name_of(plan.objective)},
                     {"training_sequences", plan.training_sequences},
                     {"validation_sequences", plan.validation_sequences},
                     {"training_tokens", plan.training_tokens},
                     {"validation_tokens", plan.validation_tokens},
                     {"vocabulary", plan.vocabulary},
                     {"tokens_per_step", plan.tokens_per_step},
                     {"epochs", finite(plan.epochs)},
                     {"learning_rate", finite(plan.learning_rate)},
                     {"learning_rate_reason", plan.rate_reason},
                     {"schedule", plan.schedule},
                     {"final_rate", finite(plan.final_rate)},
                     {"warmup", plan.warmup},
                     {"steps_reason", plan.length_reason},
                     {"weight_bytes", plan.weight_bytes},
                     {"optimizer_bytes", plan.optimizer_bytes},
                     {"activation_bytes", plan.activation_bytes},
                     {"process_bytes", plan.process_bytes},
                     {"total_bytes", plan.total_bytes},
                     {"available_bytes", plan.available_bytes},
                     {"flops_per_step", finite(plan.flops_per_step)},
                     {"seconds", finite(plan.seconds)},
                     {"pause_seconds", finite(plan.pause_seconds)},
                     {"tokens_per_second", finite(plan.tokens_per_second)},
                     {"precision", plan.precision},
                     {"isa", plan.isa},
                     {"threads", plan.threads},
                     {"notes", plan.notes}};
  return json_line(json) + "\n";
}

// Shows a progress line if reading takes longer than a second.
void TrainReport::reading(double fraction) {
  if (std::chrono::steady_clock::now() - start_ < std::chrono::seconds(1)) return;
  line_.show(fraction, "reading", fmt::format("reading {:.0f}%", 100 * fraction));
}

void TrainReport::step(const train::TrainProgress& p) {
  pausing_ = false;
  if (!p.warning.empty()) line_.above("warning: " + printable(p.warning));
  if (!p.sample.empty())
    line_.above(fmt::format("sample at step {}:\n{}", p.step, sample_block(p.sample)));
  if (!p.saved.empty()) line_.above(fmt::format("step {}: saved {}", p.step, printable(p.saved)));

  const bool measured = p.validation_loss != validation_ || p.metrics != metrics_;
  validation_ = p.validation_loss;
  metrics_ = p.metrics;
  std::string val = p.validation_loss   ? fmt::format("  val {:.4f}", *p.validation_loss)
                    : p.metrics.empty() ? ""
                                        : "  val";
  const char* gap = p.validation_loss ? "  " : " ";  // "val 1.2345  accuracy 0.9", "val bleu 30.1"
  for (const auto& [name, value] : p.metrics)
    val += fmt::format("{}{} {:.4g}", std::exchange(gap, "  "), name, value);
  for (const auto& [name, value] : p.step_metrics)
    if (name == "reward") reward_ = fmt::format("  reward {:.3f}", value);
  const std::string rest = fmt::format("  loss {:.4f}{}{}  {} tokens/s  ETA {}", p.loss, reward_,
                                       val, amount(p.tokens_per_second), duration(p.seconds_left));
  const std::string where = fmt::format("{}/{}", p.step, p.steps);
  const double fraction =
      static_cast<double>(p.step) / static_cast<double>(std::max<int64_t>(p.steps, 1));
  const bool last = p.step == p.steps;
  course_ = where + rest;
  fraction_ = fraction;
  line_.show(fraction, course_, "step " + course_, measured || last);
}

// Announces a pause that is long enough to be noticed; later calls update the time left.
void TrainReport::pause(train::Pause kind, double seconds) {
  constexpr double kNoticed = 0.5;
  if (seconds < kNoticed && !pausing_) return;
  const bool begins = !std::exchange(pausing_, true);
  static constexpr const char* kNames[] = {"evaluating", "writing a sample", "saving"};
  const std::string what =
      fmt::format("{}, about {}", kNames[static_cast<size_t>(kind)], duration(seconds));
  line_.show(fraction_, course_.empty() ? what : course_ + "  " + what, what, begins);
}

void TrainReport::end() { line_.clear(); }

std::string kept_start_text(const train::TrainResult& result) {
  if (result.kept_start.empty()) return "";
  return fmt::format(", as it was before the first step: the run ends worse than it began ({})",
                     result.kept_start);
}

std::string result_text(const train::TrainResult& r, const train::TrainOptions& options,
                        const train::TrainPlan& plan) {
  std::string best;
  if (r.best_loss > 0) best = fmt::format(", best held-out loss {:.4f}", r.best_loss);
  if (r.best_loss > 0 && r.bits_per_byte > 0)
    best += fmt::format(" ({:.3f} bits per byte)", r.bits_per_byte);
  for (const auto& [name, value] : r.metrics) best += fmt::format(", {} {:.4g}", name, value);
  const auto size = [](uint64_t bytes) { return memory(static_cast<double>(bytes)); };
  return fmt::format(
      "{} at step {}: loss {:.4f}{}\nTime: {}, planned: {}; speed: {} tokens/s, planned: {}; peak "
      "memory: {}, planned: {}\nThe model is in {}\n",
      r.interrupted     ? "Interrupted"
      : r.stopped_early ? "Stopped early, since the evaluations no longer improved,"
                        : "Done",
      r.step, r.loss, best, duration(r.seconds), duration(plan.seconds),
      amount(r.tokens_per_second), amount(plan.tokens_per_second), size(r.peak_bytes),
      size(plan.total_bytes), printable(options.out) + kept_start_text(r));
}

std::string result_json(const train::TrainResult& r, const train::TrainOptions& options,
                        const train::TrainPlan& plan) {
  Json json = {{"out", options.out},
               {"step", r.step},
               {"steps", plan.steps},
               {"loss", finite(r.loss)},
               {"best_loss", finite(r.best_loss)},
               {"bits_per_byte", finite(r.bits_per_byte)},
               {"seconds", finite(r.seconds)},
               {"planned_seconds", finite(plan.seconds)},
               {"tokens_per_second", finite(r.tokens_per_second)},
               {"planned_tokens_per_second", finite(plan.tokens_per_second)},
               {"parameters", plan.parameters},
               {"peak_bytes", r.peak_bytes},
               {"planned_bytes", plan.total_bytes},
               {"precision", plan.precision},
               {"isa", plan.isa},
               {"threads", plan.threads},
               {"interrupted", r.interrupted},
               {"stopped_early", r.stopped_early}};
  if (!r.kept_start.empty()) json["kept_start"] = r.kept_start;
  for (const auto& [name, value] : r.metrics) json[name] = finite(value);
  return json_line(json) + "\n";
}

std::vector<std::string> given_arguments(const OptionTable& table) {
  std::vector<std::string> arguments;
  for (const Option& option : table.all()) {
    // Options of one process, and those that no run starts with.
    static const std::vector<std::string> left_out = {"--dry-run", "--show-example",
                                                      "--dump-config", "--inspect"};
    const bool out = option.section == "Common" ||
                     std::find(left_out.begin(), left_out.end(), option.name) != left_out.end();
    if (out || option.given.empty() || option.source.starts_with("FOVEA_")) continue;
    if (option.kind == Kind::flag) {
      arguments.push_back(option.name);
    } else if (option.name.starts_with("--")) {
      for (const std::string& value : option.given) {
        arguments.push_back(option.name);
        arguments.push_back(value);
      }
    } else {
      arguments.insert(arguments.end(), option.given.begin(), option.given.end());
    }
  }
  return arguments;
}

std::string resume_command(const std::string& verb, const std::vector<std::string>& arguments) {
  std::string command = "fovea " + verb;
  for (const std::string& argument : arguments) command += " " + shell_quoted(argument);
  return command;
}

std::string longer_command(const std::string& verb, const std::vector<std::string>& arguments,
                           int64_t steps, const std::vector<std::string>& steps_spellings) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = arguments[i].substr(0, arguments[i].find('='));
    const bool is_steps =
        std::find(steps_spellings.begin(), steps_spellings.end(), name) != steps_spellings.end();
    if (!is_steps) {
      kept.push_back(arguments[i]);
    } else if (name == arguments[i]) {
      ++i;  // skips the option's value
    }
  }
  return resume_command(verb, kept) + fmt::format(" --steps {}", 2 * steps);
}

std::string shell_quoted(const std::string& word) {
  const std::string plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace fovea::cli
