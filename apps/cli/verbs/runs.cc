#include "fovea/train/runs.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "cli/command.h"
#include "options/options.h"
#include "terminal/progress.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRows = 16, kMargin = 11;  // kMargin: columns of the labels and of the axis

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  int64_t last = 1;
};

// Returns the values of a curve, or nothing if the run has none.
const train::Curve* curve_of(const train::RunLog& run, const std::string& key) {
  const auto found = run.curves.find(key);
  return found == run.curves.end() ? nullptr : &found->second;
}

std::optional<double> last_of(const train::RunLog& run, const std::string& key) {
  const train::Curve* const curve = curve_of(run, key);
  return curve == nullptr ? std::nullopt : std::optional(curve->back().second);
}

std::optional<double> least_of(const train::RunLog& run, const std::string& key) {
  const train::Curve* const curve = curve_of(run, key);
  if (curve == nullptr) return std::nullopt;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [step, value] : *curve) least = std::min(least, value);
  return least;
}

int64_t steps_of(const train::RunLog& run) {
  const train::Curve* const curve = curve_of(run, "loss");
  return curve == nullptr ? 0 : curve->back().first;
}

// Returns the names of the settings whose values differ between the runs.
std::vector<std::string> differing(const std::vector<train::RunLog>& runs) {
  std::set<std::string> names;
  for (const train::RunLog& run : runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  std::vector<std::string> found;
  for (const std::string& name : names) {
    std::set<std::string> values;
    for (const train::RunLog& run : runs) {
      const auto value = run.settings.find(name);
      values.insert(value == run.settings.end() ? "" : value->second);
    }
    if (values.size() > 1) found.push_back(name);
  }
  return found;
}

Range range_of(const std::vector<std::pair<std::string, train::Curve>>& curves) {
  Range range;
  for (const auto& [name, curve] : curves)
    for (const auto& [step, value] : curve) {
      range.low = std::min(range.low, value), range.high = std::max(range.high, value);
      range.last = std::max(range.last, step);
    }
  if (!(range.high > range.low)) range.high = range.low + 1;
  return range;
}

char letter_of(size_t curve) { return static_cast<char>('a' + curve % 26); }

// Returns a plot of curves over steps in lines of text of at most `width` columns: each point of
// the n-th curve is the n-th letter, and a legend follows.
std::string curve_plot(const std::vector<std::pair<std::string, train::Curve>>& curves,
                       const std::string& title, int width, bool utf8) {
  if (curves.empty()) return "";
  const Range range = range_of(curves);
  const int columns = std::max(10, width - kMargin);
  std::vector<std::string> rows(kRows, std::string(static_cast<size_t>(columns), ' '));
  for (size_t n = 0; n < curves.size(); ++n) {
    for (const auto& [step, value] : curves[n].second) {
      const double x = static_cast<double>(step) / static_cast<double>(range.last);
      const double y = (range.high - value) / (range.high - range.low);
      const auto column = static_cast<size_t>(std::clamp(x, 0.0, 1.0) * (columns - 1));
      rows[static_cast<size_t>(y * (kRows - 1))][column] = letter_of(n);
    }
  }
  std::string text = title + "\n";
  for (int row = 0; row < kRows; ++row) {
    const double value = range.high - (range.high - range.low) * row / (kRows - 1);
    const std::string label = row % 5 == 0 ? fmt::format("{:9.4g}", value) : std::string(9, ' ');
    text += label + (utf8 ? " │" : " |") + rows[static_cast<size_t>(row)] + "\n";
  }
  text += fmt::format("{:>11}{:>{}}\n", 0, range.last, columns - 1);
  for (size_t n = 0; n < curves.size(); ++n)
    text += fmt::format("  {}  {}\n", letter_of(n), printable(curves[n].first));
  return text;
}

class RunsCommand : public Command {
 public:
  RunsCommand()
      : Command("runs DIR... [--metric NAME] [--out FILE.svg] [--csv] [OPTIONS]",
                "Lists the training runs in directories, with the settings that differ, and plots "
                "one of their metrics, all runs in one plot.") {}

  void declare(OptionTable& table) override {
    table.add(positionals("DIR", {}, "directory of a run, or a directory with runs", folders_));
    table.add(as("NAME", text("--metric", {},
                              "key of log.jsonl to plot, such as loss, eval_loss, learning_rate or "
                              "tokens_per_sec",
                              metric_)));
    table.add(as("FILE",
                 text("--out", {"-o", "--output"}, "also draw the plot into this SVG file", out_)));
    table.add(flag("--csv", {}, "print the values of all metrics as CSV: run, step, metric, value",
                   csv_));
  }

  int run(const OptionTable&) override {
    if (folders_.empty()) throw UsageError("DIR: not given; expected a directory with runs");
    const std::vector<train::RunLog> runs = read_all();
    const std::string key = plotted_key(runs);
    std::vector<std::pair<std::string, train::Curve>> curves;
    for (const train::RunLog& run : runs)
      if (const train::Curve* curve = curve_of(run, key)) curves.emplace_back(run.folder, *curve);
    if (!out_.empty()) write(train::overlaid(curves, key));
    if (csv_) return print_csv(runs), 0;
    if (json) return print_json(runs), 0;
    print(table_of(runs));
    print(curve_plot(curves, key, std::min(terminal_width(), 100), can_utf8()));
    return 0;
  }

 private:
  std::vector<train::RunLog> read_all() const {
    std::vector<train::RunLog> runs;
    for (const std::string& folder : folders_) {
      const std::vector<std::string> found = train::find_runs(folder);
      if (found.empty())
        throw UsageError(
            fmt::format("{}: holds no training run; expected a directory with the "
                        "log.jsonl of a run",
                        folder));
      for (const std::string& path : found) runs.push_back(train::read_run(path));
    }
    return runs;
  }

  // Returns the key given by --metric, else eval_loss if a run has it, else loss.
  std::string plotted_key(const std::vector<train::RunLog>& runs) const {
    std::set<std::string> known;
    for (const train::RunLog& run : runs)
      for (const auto& [key, curve] : run.curves) known.insert(key);
    if (metric_.empty()) return known.contains("eval_loss") ? "eval_loss" : "loss";
    if (!known.contains(metric_))
      throw UsageError(fmt::format("--metric: {} is not in the logs; expected one of {}", metric_,
                                   fmt::join(known, ", ")));
    return metric_;
  }

  void write(const std::string& svg) const {
    std::ofstream file(out_);
    file << svg;
    file.close();
    if (!file) throw UsageError(fmt::format("--out: {} cannot be written", out_));
  }

  static std::string table_of(const std::vector<train::RunLog>& runs) {
    size_t width = 3;
    for (const train::RunLog& run : runs) width = std::max(width, run.folder.size());
    const auto number = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.4f}", *value) : "-";
    };
    std::string text = fmt::format("{:<{}}  {:>8}  {:>9}  {:>9}  {:>9}  {:>8}  {:>9}\n", "run",
                                   width, "steps", "loss", "eval", "best eval", "tokens/s", "time");
    for (const train::RunLog& run : runs) {
      const auto speed = last_of(run, "tokens_per_sec");
      text += fmt::format("{:<{}}  {:>8}  {:>9}  {:>9}  {:>9}  {:>8}  {:>9}\n",
                          printable(run.folder), width, steps_of(run), number(last_of(run, "loss")),
                          number(last_of(run, "eval_loss")), number(least_of(run, "eval_loss")),
                          speed ? amount(*speed) : "-", duration(run.seconds));
    }
    if (runs.size() == 1) return text + "\n";
    for (const std::string& name : differing(runs)) {
      text += "\n" + name + "\n";
      for (const train::RunLog& run : runs) {
        const auto value = run.settings.find(name);
        text += fmt::format("  {:<{}}  {}\n", printable(run.folder), width,
                            value == run.settings.end() ? "-" : printable(value->second));
      }
    }
    return text + "\n";
  }

  static void print_csv(const std::vector<train::RunLog>& runs) {
    const auto quoted = [](const std::string& text) {
      if (text.find_first_of(",\"\n") == std::string::npos) return text;
      std::string cell = "\"";
      for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
      return cell + "\"";
    };
    std::string text = "run,step,metric,value\n";
    for (const train::RunLog& run : runs)
      for (const auto& [key, curve] : run.curves)
        for (const auto& [step, value] : curve)
          text += fmt::format("{},{},{},{}\n", quoted(run.folder), step, quoted(key), value);
    print(text);
  }

  static void print_json(const std::vector<train::RunLog>& runs) {
    Json all = Json::array();
    for (const train::RunLog& run : runs) {
      Json one = {{"folder", run.folder},   {"steps", steps_of(run)}, {"seconds", run.seconds},
                  {"version", run.version}, {"command", run.command}, {"settings", run.settings}};
      for (const auto& [key, curve] : run.curves) one["last"][key] = curve.back().second;
      if (const auto best = least_of(run, "eval_loss")) one["best_eval_loss"] = *best;
      all.push_back(one);
    }
    print(json_line({{"runs", all}}) + "\n");
  }

  std::vector<std::string> folders_;
  std::string metric_, out_;
  bool csv_ = false;
};

}  // namespace

std::unique_ptr<Command> make_runs() { return std::make_unique<RunsCommand>(); }

}  // namespace fovea::cli
