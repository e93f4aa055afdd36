#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/ordered_json.h"
#include "base/weighted_path.h"
#include "cli/command.h"
#include "cli/page_server.h"
#include "cli/reports/train_report.h"
#include "fovea/core/error.h"
#include "fovea/train/runs.h"
#include "fovea/train/train.h"
#include "jobs/ranks.h"
#include "options/open_model.h"
#include "options/train_options.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

// `fovea train` and `fovea distil`.
class TrainCommand : public Command {
 public:
  TrainCommand()
      : Command("train DATA... --out DIR [OPTIONS]",
                "Trains a Transformer on text, on pairs of texts (--pairs), on labelled texts "
                "(--labels) or on labelled images (--images), from random weights or from a "
                "model (--from), also on conversations or, for a speech model, on recordings (a "
                ".csv, .tsv or .jsonl table). "
                "--out DIR alone resumes an interrupted run; a larger --steps trains longer. "
                "Ctrl-C saves a "
                "snapshot and exits.") {}
  explicit TrainCommand(bool distils)
      : Command("distil TEACHER STUDENT DATA... --out DIR [OPTIONS]",
                "Trains a model, the student, to predict what another model with the same "
                "tokenizer, the teacher, predicts for the data (knowledge distillation). The loss "
                "is alpha T^2 KL(teacher || student), at the temperature T, plus (1 - alpha) "
                "times the usual loss of training. The teacher reads each text once; its outputs "
                "are kept on disk. All else is as in fovea train."),
        verb_("distil") {
    request_.distils = distils;
  }

  void declare(OptionTable& table) override { request_.declare(table); }
  bool runs_on_ranks(const OptionTable&) const override { return true; }
  void apply(OptionTable& table) override {
    const std::string out = take_recorded_run(table);
    request_.options.command = given_arguments(table);
    request_.options.command.insert(request_.options.command.begin(), verb_);
    const std::vector<std::string> command = request_.options.command;
    request_.apply(table);
    request_.options.command = command;  // apply() sets the options of the preset
    if (!out.empty()) request_.options.out = out;
    for (const char* name : {"--steps", "--epochs"}) {
      const std::vector<std::string>& aliases = table.find(name)->aliases;
      steps_spellings_.insert(steps_spellings_.end(), aliases.begin(), aliases.end());
      steps_spellings_.emplace_back(name);
    }
  }

  int run(const OptionTable& table) override {
    if (request_.dump_config) {
      print(config_of(request_, table));
      return 0;
    }
    require(table);
    if (request_.show_example) return show_example();
    if (strict && !request_.options.from.empty()) open_model(request_.options.from);
    if (const jobs::Ranks* ranks = jobs::Ranks::current()) {
      if (request_.dry_run) return jobs::Ranks::only_helps() ? 0 : plan_only();
      request_.options.ranks = &ranks->communicator();
      return jobs::Ranks::only_helps() ? help() : train_now();
    }
    catch_signals();
    return request_.dry_run ? plan_only() : train_now();
  }

 private:
  // If only an output directory with an earlier run is given, gives the table the options of that
  // run, and enters its working directory. Returns the absolute path of the output directory, or
  // "" if the options are complete.
  std::string take_recorded_run(OptionTable& table) {
    const Option& out = *table.find("--out");
    for (const char* data : {"DATA", "--pairs", "--labels", "--images"})
      if (table.find(data) != nullptr && table.given(data)) return "";
    if (out.given.empty() || train::snapshots(out.given.back()).empty()) return "";
    const train::RunLog run = train::read_run(out.given.back());
    if (run.command.empty() || run.command.front() != verb_) return "";
    const std::vector<std::string> words(run.command.begin() + 1, run.command.end());
    TrainCommand recorded = verb_ == "train" ? TrainCommand() : TrainCommand(true);
    OptionTable before;
    recorded.declare(before);
    before.parse(words);
    const std::string log = out.given.back() + "/log.jsonl";
    if (before.find("--reward-command") != nullptr && before.given("--reward-command")) {
      throw UsageError(fmt::format(
          "--out: {} names a program for --reward-command; expected the whole command, since a "
          "directory must not choose which program runs",
          printable(log)));
    }
    const std::string absolute = std::filesystem::absolute(out.given.back()).string();
    const bool length = table.given("--steps") || table.given("--epochs");
    for (const Option& option : before.all()) {
      const bool replaced = length && (option.name == "--steps" || option.name == "--epochs");
      if (!option.given.empty() && !replaced) table.give(option.name, option.given, log);
    }
    std::error_code failed;
    if (!run.working_folder.empty()) std::filesystem::current_path(run.working_folder, failed);
    if (failed)
      throw UsageError(
          fmt::format("--out: {} names the working directory {}, which cannot be "
                      "entered; expected the whole command",
                      printable(log), printable(run.working_folder)));
    if (!jobs::Ranks::only_helps())
      note("Resuming the run of\n  " + resume_command(verb_, words) + "\n");
    return absolute;
  }

  void require(const OptionTable& table) const {
    const train::TrainOptions& o = request_.options;
    for (const char* model : {"TEACHER", "STUDENT"})
      if (request_.distils && !table.given(model))
        throw UsageError(fmt::format("{}: not given; expected a model directory", model));
    if (o.data.empty() && o.pairs.empty() && o.labels.empty() && o.images.empty())
      throw UsageError(
          "DATA: not given; expected text files or directories, --pairs, --labels or --images");
    if (request_.options.out.empty() && !request_.dry_run && !request_.show_example) {
      throw UsageError("--out: not given; expected the output directory");
    }
  }

  int plan_only() const {
    const train::TrainPlan plan = train::plan_training(request_.spec, request_.options);
    print(json ? plan_json(plan, request_.options.out) : plan_table(plan, request_.options.out));
    return 0;
  }

  // Prints the first training text of conversations, or the first pair of preferences, with the
  // trained parts marked.
  int show_example() const {
    const bool coloured = is_terminal(Channel::output) && can_colour();
    std::string text;
    int64_t number = 0;
    nlohmann::ordered_json parts = nlohmann::ordered_json::array();
    for (const train::ExamplePart& part : train::training_example(request_.options)) {
      const std::string written = printable(part.text);
      parts.push_back({{"text", part.text}, {"trained", part.trained}});
      if (part.number > 0) parts.back()["rejected"] = true;
      if (part.number > number) text += "\n\nrejected:\n";
      number = part.number;
      const char* const before = !part.trained ? "" : coloured ? "\033[32m" : "[[";
      const char* const after = !part.trained ? "" : coloured ? "\033[0m" : "]]";
      text += before + written + after;
    }
    print(json ? json_line({{"parts", parts}}) + "\n" : text + "\n");
    return 0;
  }

  // Trains on a rank that does not lead.
  int help() const {
    train::train(request_.spec, request_.options);
    return 0;
  }

  int train_now() {
    std::optional<PageServer> page;
    if (request_.inspect) {
      page.emplace(std::vector<std::string>{request_.options.out}, 0);
      note("Follow the run at " + page->address() + "#view=learn\n");
    }
    request_.options.reinforcement.stop = stop_requested;
    train::TrainPlan seen;
    TrainReport report;
    const auto reading = [&](double fraction) {
      report.reading(fraction);
      return !stop_requested();
    };
    const auto planned = [&](const train::TrainPlan& plan) {
      seen = plan;
      report.end();
      note(plan_table(plan, request_.options.out));
      return !stop_requested();
    };
    const auto progress = [&](const train::TrainProgress& now) {
      report.step(now);
      return !stop_requested();
    };
    const auto pausing = [&](train::Pause kind, double seconds) { report.pause(kind, seconds); };
    const train::TrainResult result =
        train::train(request_.spec, request_.options, planned, progress, reading, pausing);
    report.end();
    const bool moved = result.step > seen.first_step;
    if (moved) note(result_text(result, request_.options, seen));
    if (!moved && !stop_requested()) {
      note(result.stopped_early
               ? fmt::format("Nothing to do: the run ended early at step {}, since {} evaluations "
                             "did not improve; a larger --patience continues it\n",
                             result.step, request_.options.patience)
               : fmt::format("Nothing to do: the run has already reached step {}\n", result.step));
    }
    if (json) print(result_json(result, request_.options, seen));
    if (stop_requested()) {
      note("Resume with:\n  " + resume_command(verb_, arguments) + "\n");
      return stop_code();
    }
    advise(seen);
    return 0;
  }

  void advise(const train::TrainPlan& plan) const {
    note("Next steps:\n" + uses(request_.options, plan) + "  " +
         longer_command(verb_, arguments, plan.steps, steps_spellings_) + "\n");
  }

  // Returns commands that use the new model.
  static std::string uses(const train::TrainOptions& o, const train::TrainPlan& plan) {
    const std::string out = shell_quoted(o.out);
    const auto eval = [&](const char* option, const std::vector<std::string>& files) {
      std::string line = "  fovea eval " + out + option;
      for (const std::string& file : files) line += " " + shell_quoted(file);
      return line + "\n";
    };
    if (plan.spec.input.kind == model::InputKind::audio) {
      const auto& files = !o.validation_pairs.empty() ? o.validation_pairs
                          : o.pairs.empty()           ? o.data
                                                      : o.pairs;
      return "  fovea transcribe " + out + " AUDIO...\n" + eval("", files);
    }
    if (!o.pairs.empty()) {
      const auto& files = o.validation_pairs.empty() ? o.pairs : o.validation_pairs;
      return "  fovea translate " + out + "\n" + eval(" --pairs", files);
    }
    if (!o.images.empty()) return "  fovea classify " + out + " IMAGE...\n";
    if (!o.labels.empty())
      return eval(" --labels", o.validation_labels.empty() ? o.labels : o.validation_labels);
    using enum train::Objective;
    const auto weighted = split_weight(o.data.front());  // evaluations have no weights
    const std::string data = weighted.second && !std::filesystem::exists(o.data.front())
                                 ? weighted.first
                                 : o.data.front();
    if (plan.objective == reward) return eval("", {data});
    if (plan.objective >= chats && plan.objective <= grpo) {
      if (plan.spec.encoder) return "  fovea translate " + out + "\n";
      const bool talks = std::filesystem::exists(o.out + "/chat_template.jinja");
      return (talks ? "  fovea chat " : "  fovea generate ") + out + "\n";
    }
    const bool writes = plan.objective == next_token;
    return (writes ? "  fovea generate " + out + "\n" : "") + "  fovea inspect " + out + "\n" +
           eval("", {data});
  }

  std::string verb_ = "train";
  TrainRequest request_;
  std::vector<std::string> steps_spellings_;
};

}  // namespace

std::unique_ptr<Command> make_train() { return std::make_unique<TrainCommand>(); }
std::unique_ptr<Command> make_distil() { return std::make_unique<TrainCommand>(true); }

}  // namespace fovea::cli
