#include "lab/scale.h"

#include <fmt/format.h>

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

std::string ranged(const FittedNumber& n) {
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", n.value, n.low, n.high);
}

std::string law_row(const char* name, const std::string& value) {
  return fmt::format("{:<22}{}\n", name, value);
}

class ScaleCommand : public Command {
 public:
  ScaleCommand()
      : Command("scale DATA... [OPTIONS]",
                "Fits a scaling law to a text: trains small models of several widths for several "
                "numbers of steps, fits L(N, D) = E + A / N^alpha + B / D^beta to their losses on "
                "the held-out end, checks it on the largest model, which a first fit leaves out, "
                "and prints what to train for a budget. Intervals are those of 200 resamples. "
                "Writes result.json, table.md and chart.svg.") {}

  void declare(OptionTable& table) override {
    add_fields(table, options_,
               {{"data", {"--data", "-f", "--file"}, "DATA"},
                {.field = "out", .aliases = {"-o"}, .placeholder = "DIR"},
                {"learning_rate", {"--lr"}}});
  }

  bool runs_on_ranks(const OptionTable&) const override { return true; }

  int run(const OptionTable&) override {
    if (options_.data.empty()) throw UsageError("DATA: not given; expected text files");
    if (const jobs::Ranks* ranks = jobs::Ranks::current()) return run_on(*ranks);
    catch_signals("stopping after this run (press again to stop immediately)");
    ProgressLine line;
    const ScaleResult result = fit_scaling_law(options_, [&](int64_t run, int64_t runs) {
      const std::string what = fmt::format("run {} of {}", run + 1, runs);
      line.show(static_cast<double>(run) / static_cast<double>(runs), what, what);
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
    const ScaleBench bench(options_);
    LabRanks shared(ranks, bench.key(), [&](const LabRun& run) { return bench.measure(run); });
    if (ranks.rank() > 0) {
      shared.help();
      return 0;
    }
    const ScaleResult result = fit_scaling_law(options_, {}, shared.on_all());
    shared.end();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

  std::string as_text(const ScaleResult& r) const {
    std::string text = law_row("E", ranged(r.law.floor)) + law_row("A", ranged(r.law.size_factor)) +
                       law_row("alpha", ranged(r.law.size_exponent)) +
                       law_row("B", ranged(r.law.data_factor)) +
                       law_row("beta", ranged(r.law.data_exponent));
    for (const ScaleRun& run : r.runs)
      if (run.left_out)
        text += law_row("left out",
                        fmt::format("N {:.3g}, D {:.3g}: loss {:.4f}, predicted {}", run.parameters,
                                    run.tokens, run.loss, ranged(run.predicted)));
    text += law_row("mean error", fmt::format("{:.2f}% of the losses left out", 100 * r.error));
    text += law_row("budget", fmt::format("{:.3g} FLOPs", r.budget));
    text += law_row("train", "N " + ranged(r.parameters)) + law_row("on", "D " + ranged(r.tokens)) +
            law_row("expected loss", ranged(r.loss) + " nats per character");
    return text + "see " + printable(options_.out) + "/table.md and chart.svg\n";
  }

  std::string as_json(const ScaleResult& r) const {
    const auto number = [](const FittedNumber& n) {
      return Json{{"value", n.value}, {"low", n.low}, {"high", n.high}};
    };
    return json_line(Json{{"out", options_.out},
                          {"E", number(r.law.floor)},
                          {"alpha", number(r.law.size_exponent)},
                          {"beta", number(r.law.data_exponent)},
                          {"error", r.error},
                          {"budget", r.budget},
                          {"parameters", number(r.parameters)},
                          {"tokens", number(r.tokens)},
                          {"loss", number(r.loss)}}) +
           "\n";
  }

  ScaleOptions options_;
};

}  // namespace

std::unique_ptr<Command> make_scale() { return std::make_unique<ScaleCommand>(); }

}  // namespace fovea::cli
