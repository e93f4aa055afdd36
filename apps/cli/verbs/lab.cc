#include "lab/lab.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/verbs/lab_ranks.h"
#include "options/field_options.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

class LabCommand : public Command {
 public:
  LabCommand()
      : Command(
            "lab list | NAME [OPTIONS] | judge FILE...",
            "Tests a claim about Transformers by an experiment: trains or measures small models "
            "on a grid, three times with different seeds, and decides by a rule that was "
            "written before the runs: the claim held, did not hold, holds only if, or is "
            "undecided, if intervals overlap. Writes result.json, table.md and chart.svg. An "
            "interrupted experiment continues with the runs that its folder lacks, and mpirun "
            "divides the runs among its ranks. 'fovea lab list' lists the experiments; 'fovea "
            "lab judge' decides again from the numbers of result files, which are void if their "
            "rule is not that of this program.") {}
  bool runs_on_ranks(const OptionTable&) const override { return true; }

  void declare(OptionTable& table) override {
    table.add(positional("NAME", {"--experiment"}, "experiment, or \"list\" or \"judge\"", name_));
    table.add(positionals("FILE", {}, "result.json of an experiment, for judge", files_));
    table.add(flag("--short", {}, "a small grid, with one learning rate (default)", brief_));
    table.add(
        flag("--long", {}, "a larger grid; the learning rate of each side is tuned first", full_));
    add_fields(table, options_,
               {{.field = "out", .aliases = {"-o"}, .placeholder = "DIR"},
                {.field = "data", .aliases = {"-f", "--file"}, .placeholder = "FILE"}},
               Fields::spelled);
  }

  int run(const OptionTable&) override {
    if (name_.empty()) throw UsageError("NAME: not given; expected list, or an experiment of it");
    if (name_ == "judge") return jobs::Ranks::only_helps() ? 0 : judge();
    if (!files_.empty())
      throw UsageError(fmt::format("{}: unexpected; files are for fovea lab judge", files_[0]));
    if (brief_ && full_) throw UsageError("--short: cannot be combined with --long");
    if (name_ == "list") return jobs::Ranks::only_helps() ? 0 : list();
    options_.form = full_ ? LabForm::full : LabForm::brief;
    if (const jobs::Ranks* ranks = jobs::Ranks::current()) return run_on(*ranks);
    catch_signals("stopping after this run (press again to stop immediately)");
    ProgressLine line;
    const LabResult result = run_experiment(name_, options_, [&](const LabProgress& p) {
      const double done = static_cast<double>(p.run) / static_cast<double>(p.runs);
      line.show(done, fmt::format("run {} of {}: {}", p.run + 1, p.runs, p.what),
                fmt::format("run {} of {}: {}", p.run + 1, p.runs, p.what));
      return !stop_requested();
    });
    line.clear();
    if (result.stopped) return stop_code();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

 private:
  // Rank 0 writes the results; all ranks measure runs.
  int run_on(const jobs::Ranks& ranks) const {
    const LabBench bench = LabBench::open(name_, options_);
    LabRanks shared(ranks, bench.key(), [&](const LabRun& run) { return bench.measure(run); });
    if (ranks.rank() > 0) {
      shared.help();
      return 0;
    }
    const LabResult result = run_experiment(name_, options_, {}, shared.on_all());
    shared.end();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

  int judge() const {
    if (files_.empty()) throw UsageError("FILE: not given; expected a result.json");
    for (const std::string& file : files_) {
      const LabResult result = judge_result(file);
      print(json ? as_json(result) : printable(file) + "\n" + conclusions_text(result));
    }
    return 0;
  }

  int list() const {
    Json all = Json::array();
    std::string text;
    for (const ExperimentSummary& e : experiments()) {
      all.push_back({{"name", e.name},
                     {"claims", e.claims},
                     {"metric", e.metric},
                     {"axis", e.axis},
                     {"rule", e.rule},
                     {"rule_hash", rule_hash(e)},
                     {"reads_text", e.reads_text}});
      text += fmt::format("{:<18} {}{}\n", e.name, e.claims[0], e.reads_text ? " [--data]" : "");
      for (size_t i = 1; i < e.claims.size(); ++i)
        text += fmt::format("{:<18} {}\n", "", e.claims[i]);
    }
    print(json ? all.dump() + "\n" : text);
    return 0;
  }

  static std::string conclusions_text(const LabResult& r) {
    std::string text;
    for (const Conclusion& c : r.conclusions) text += fmt::format("{}: {}\n", c.claim, c.sentence);
    return text;
  }

  static std::string as_text(const LabResult& r) {
    return conclusions_text(r) +
           fmt::format("rule: {}\n{:.0f} s of runs; see {}/table.md and chart.svg\n",
                       r.experiment.rule, r.seconds, printable(r.out));
  }

  static std::string as_json(const LabResult& r) {
    Json conclusions = Json::array();
    for (const Conclusion& c : r.conclusions)
      conclusions.push_back(
          {{"claim", c.claim}, {"verdict", name_of(c.verdict)}, {"sentence", c.sentence}});
    return json_line(Json{{"experiment", r.experiment.name},
                          {"out", r.out},
                          {"seconds", r.seconds},
                          {"conclusions", conclusions}}) +
           "\n";
  }

  std::string name_;
  std::vector<std::string> files_;
  bool brief_ = false, full_ = false;
  LabOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_lab() { return std::make_unique<LabCommand>(); }

}  // namespace fovea::cli
