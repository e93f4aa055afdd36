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

struct LabBench::Parts {
  const lab::Experiment* experiment;
  LabOptions options;
  std::optional<lab::Text> text;
};

namespace lab {
namespace {

constexpr uint64_t kSeeds = 3;       // of the results: 1 to 3
constexpr uint64_t kTuningSeed = 0;  // of the runs that choose a learning rate

// Thrown when the callback stops an experiment.
struct Stopped {};

// Takes the runs of an experiment from its journal, and measures those that it lacks.
class Runner {
 public:
  Runner(const LabBench& bench, Journal& journal,
         const std::function<bool(const LabProgress&)>& progress, const MeasureLabRuns& measure)
      : bench_(bench),
        experiment_(*bench.parts().experiment),
        form_(bench.parts().options.form),
        journal_(journal),
        report_(progress),
        measure_(measure) {
    const auto cells = static_cast<int64_t>(experiment_.arms.size() * grid().size());
    progress_.runs = cells * (static_cast<int64_t>(kSeeds) + (tunes() ? tried() : 0));
  }

  Table run() {
    if (tunes()) measure(tuning_runs());
    std::vector<LabRun> runs;
    // Seeds are the outer loop: changes of the machine's speed affect all arms alike.
    for (const double x : grid())
      for (uint64_t seed = 1; seed <= kSeeds; ++seed)
        for (const std::string& arm : experiment_.arms)
          runs.push_back({arm, x, rate_of(arm, x), seed});
    measure(runs);
    Table table;
    for (const LabRun& run : runs)
      for (const Reading& r : *journal_.find(run)) table.add(r.series, r.x, run.rate, r.y);
    table.finish();
    return table;
  }

 private:
  const std::vector<double>& grid() const { return experiment_.grid.of(form_); }
  bool tunes() const { return form_ == LabForm::full && experiment_.rates.size() > 1; }
  int64_t tried() const { return std::ssize(experiment_.rates); }

  std::vector<LabRun> tuning_runs() const {
    std::vector<LabRun> runs;
    for (const double x : grid())
      for (const std::string& arm : experiment_.arms)
        for (const double rate : experiment_.rates) runs.push_back({arm, x, rate, kTuningSeed});
    return runs;
  }

  // Returns the learning rate of an arm: the best one of the tuning runs, if there are any.
  double rate_of(const std::string& arm, double x) const {
    if (experiment_.rates.empty()) return 0;
    if (!tunes()) return experiment_.rates[0];
    double best = -std::numeric_limits<double>::infinity(), chosen = experiment_.rates[0];
    for (const double rate : experiment_.rates) {
      double sum = 0;
      for (const Reading& r : *journal_.find({arm, x, rate, kTuningSeed})) sum += r.y;
      const double merit = experiment_.greater_is_better ? sum : -sum;
      if (merit > best) best = merit, chosen = rate;
    }
    return chosen;
  }

  // Measures the runs that the journal lacks.
  void measure(const std::vector<LabRun>& runs) {
    if (measure_) {
      std::vector<LabRun> missing;
      for (const LabRun& run : runs)
        if (!journal_.find(run)) missing.push_back(run);
      measure_(missing, [&](size_t i, const Readings& readings, double seconds) {
        journal_.add(missing[i], readings, seconds);
      });
      for (const LabRun& run : missing)
        if (!journal_.find(run)) throw Stopped();
      return;
    }
    for (const LabRun& run : runs) {
      progress_.what = fmt::format("{}, {}, seed {}", run.arm, run.x, run.seed);
      if (report_ && !report_(progress_)) throw Stopped();
      ++progress_.run;
      if (journal_.find(run)) continue;
      const auto start = std::chrono::steady_clock::now();
      const Readings readings = bench_.measure(run);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      journal_.add(run, readings, passed.count());
    }
  }

  const LabBench& bench_;
  const Experiment& experiment_;
  const LabForm form_;
  Journal& journal_;
  const std::function<bool(const LabProgress&)>& report_;
  const MeasureLabRuns& measure_;
  LabProgress progress_;
};

nlohmann::ordered_json settings_of(const LabBench::Parts& parts) {
  return {{"experiment", parts.experiment->summary.name},
          {"form", parts.options.form == LabForm::brief ? "brief" : "full"},
          {"effort", parts.options.effort},
          {"rule", rule_hash(parts.experiment->summary)},
          {"data", parts.text ? hash_text(parts.text->hash()) : ""}};
}

}  // namespace
}  // namespace lab

LabBench LabBench::open(const std::string& name, const LabOptions& options) {
  check_fields(options);
  Parts parts{.experiment = &lab::experiment_named(name), .options = options, .text = {}};
  if (parts.experiment->summary.reads_text) {
    check_field(!options.data.empty(), "data",
                "none, but {} trains on text; expected a file, such as the Bible of ./run demo",
                name);
    parts.text.emplace(options.data);
  } else {
    check_field(options.data.empty(), "data", "given, but {} generates its data; expected none",
                name);
  }
  return LabBench(std::make_shared<Parts>(std::move(parts)));
}

std::vector<LabReading> LabBench::measure(const LabRun& run) const {
  const FloatMode mode;
  const lab::Trial trial{
      {run}, parts_->options.form, parts_->options.effort, parts_->text ? &*parts_->text : nullptr};
  std::vector<LabReading> readings = parts_->experiment->measure(trial);
  for (const LabReading& r : readings) {
    if (!std::isfinite(r.y))
      fail(ErrorKind::Failed, "lab: {}: {} at {} is {}; expected a finite number",
           parts_->experiment->summary.name, r.series, r.x, r.y);
  }
  return readings;
}

std::string LabBench::key() const { return lab::settings_of(*parts_).dump(); }

LabResult run_experiment(const std::string& name, const LabOptions& options,
                         const std::function<bool(const LabProgress&)>& progress,
                         const MeasureLabRuns& measure) {
  const FloatMode mode;
  const LabBench bench = LabBench::open(name, options);
  const lab::Experiment& experiment = *bench.parts().experiment;
  LabResult result;
  result.experiment = experiment.summary;
  result.form = options.form;
  result.out = options.out.empty() ? "lab-" + name : options.out;
  lab::Journal journal(result.out, lab::settings_of(bench.parts()));
  try {
    const lab::Table table = lab::Runner(bench, journal, progress, measure).run();
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
