#include <chrono>
#include <cmath>
#include <limits>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "lab/experiment.h"
#include "lab/journal.h"
#include "lab/report.h"

namespace fovea {
namespace lab {
namespace {

constexpr uint64_t kSeeds = 3;       // of the results: 1 to 3
constexpr uint64_t kTuningSeed = 0;  // of the runs that choose a learning rate

// Thrown when the callback stops an experiment.
struct Stopped {};

// Runs the trials of an experiment, or takes them from its journal.
class Runner {
 public:
  Runner(const Experiment& experiment, const LabOptions& options, Journal& journal,
         const Text* text, const std::function<bool(const LabProgress&)>& progress)
      : experiment_(experiment),
        options_(options),
        journal_(journal),
        text_(text),
        report_(progress) {
    const auto cells = static_cast<int64_t>(experiment.arms.size() * grid().size());
    progress_.runs = cells * (static_cast<int64_t>(kSeeds) + (tunes() ? tried() : 0));
  }

  Table run() {
    Table table;
    for (const double x : grid()) {
      std::vector<double> rates;
      for (const std::string& arm : experiment_.arms) rates.push_back(rate_of(arm, x));
      // Seeds are the outer loop: changes of the machine's speed affect all arms alike.
      for (uint64_t seed = 1; seed <= kSeeds; ++seed)
        for (size_t i = 0; i < rates.size(); ++i)
          for (const Reading& r : measure(experiment_.arms[i], x, rates[i], seed))
            table.add(r.series, r.x, rates[i], r.y);
    }
    table.finish();
    return table;
  }

 private:
  const std::vector<double>& grid() const { return experiment_.grid.of(options_.form); }
  bool tunes() const { return options_.form == LabForm::full && experiment_.rates.size() > 1; }
  int64_t tried() const { return std::ssize(experiment_.rates); }

  // Returns the learning rate of an arm, tuned if the form asks for it.
  double rate_of(const std::string& arm, double x) {
    if (experiment_.rates.empty()) return 0;
    if (!tunes()) return experiment_.rates[0];
    double best = -std::numeric_limits<double>::infinity(), chosen = experiment_.rates[0];
    for (const double rate : experiment_.rates) {
      double sum = 0;
      for (const Reading& r : measure(arm, x, rate, kTuningSeed)) sum += r.y;
      const double merit = experiment_.greater_is_better ? sum : -sum;
      if (merit > best) best = merit, chosen = rate;
    }
    return chosen;
  }

  Readings measure(const std::string& arm, double x, double rate, uint64_t seed) {
    const Trial trial{arm, x, rate, seed, options_.form, options_.effort, text_};
    progress_.what = fmt::format("{}, {}, seed {}", arm, x, seed);
    if (report_ && !report_(progress_)) throw Stopped();
    ++progress_.run;
    if (const auto found = journal_.find(trial)) return *found;
    const auto start = std::chrono::steady_clock::now();
    Readings readings = experiment_.measure(trial);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    for (const Reading& r : readings) {
      if (!std::isfinite(r.y))
        fail(ErrorKind::Failed, "lab: {}: {} at {} is {}; expected a finite number",
             experiment_.summary.name, r.series, r.x, r.y);
    }
    journal_.add(trial, readings, passed.count());
    return readings;
  }

  const Experiment& experiment_;
  const LabOptions& options_;
  Journal& journal_;
  const Text* text_;
  const std::function<bool(const LabProgress&)>& report_;
  LabProgress progress_;
};

nlohmann::ordered_json settings_of(const Experiment& experiment, const LabOptions& options,
                                   const Text* text) {
  return {{"experiment", experiment.summary.name},
          {"form", options.form == LabForm::brief ? "brief" : "full"},
          {"effort", options.effort},
          {"data", text == nullptr ? "" : hash_text(text->hash())}};
}

}  // namespace
}  // namespace lab

LabResult run_experiment(const std::string& name, const LabOptions& options,
                         const std::function<bool(const LabProgress&)>& progress) {
  const FloatMode mode;
  check_fields(options);
  const lab::Experiment& experiment = lab::experiment_named(name);
  std::optional<lab::Text> text;
  if (experiment.summary.reads_text) {
    check_field(!options.data.empty(), "data",
                "none, but {} trains on text; expected a file, such as the Bible of ./run demo",
                name);
    text.emplace(options.data);
  } else {
    check_field(options.data.empty(), "data", "given, but {} generates its data; expected none",
                name);
  }
  LabResult result;
  result.experiment = experiment.summary;
  result.form = options.form;
  result.out = options.out.empty() ? "lab-" + name : options.out;
  const lab::Text* reads = text ? &*text : nullptr;
  lab::Journal journal(result.out, lab::settings_of(experiment, options, reads));
  lab::Runner runner(experiment, options, journal, reads, progress);
  try {
    const lab::Table table = runner.run();
    result.points = table.points();
    result.conclusions = experiment.conclude(table);
  } catch (const lab::Stopped&) {
    result.stopped = true;
    return result;
  }
  result.seconds = journal.seconds();
  lab::write_report(result, experiment);
  return result;
}

}  // namespace fovea
