#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea {

// Experiments on claims about Transformers (docs/lab.md). Each one trains or measures small models
// on a grid, and decides about its claims by a rule that was written before the runs.

// brief: a small grid, with the learning rate that each side gets by default; docs/lab.md has the
// times. full: a larger grid, and the learning rate of each side is tuned first.
enum class LabForm { brief, full };

struct LabOptions {
  // Folder of the results; the runs that it has are not repeated. Empty = "lab-NAME".
  std::string out;
  // Text files, directories or JSON lines, for the experiments on text; the end is held out.
  std::vector<std::string> data;
  LabForm form = LabForm::brief;
  // The fraction of the steps and repetitions of each run. Other values than 1 are for tests: the
  // rules were written for 1.
  double effort = 1;
};
void visit(LabOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

struct ExperimentSummary {
  std::string name;
  std::vector<std::string> claims;  // what is tested, one sentence each
  std::string metric, axis;         // what a run measures, and against what
  std::string rule;                 // when a claim holds
  bool reads_text = false;          // needs LabOptions::data
};
// The hash of the rule's text, 16 hexadecimal digits. Results contain it: a result whose rule was
// another one is void.
std::string rule_hash(const ExperimentSummary& experiment);
// Returns the experiments in the order of the list of `fovea lab`.
std::vector<ExperimentSummary> experiments();

// did_not_hold: the intervals lie on the other side of what the rule demands. undecided: they reach
// over it. voided: the rule of a result differs from that of this program.
enum class Verdict { held, did_not_hold, holds_only_if, undecided, voided };
// "held", "did not hold", "holds only if", "undecided", "void"
const char* name_of(Verdict verdict);

struct Conclusion {
  std::string claim;
  Verdict verdict = Verdict::did_not_hold;
  std::string sentence;  // with the numbers that decided
};

// The values of one series at one point of the axis, one per seed.
struct LabPoint {
  std::string series;
  double x = 0;
  std::vector<double> values;
  double learning_rate = 0;  // 0 = nothing was trained
  // The mean, and its 95% interval from Student's t distribution with one degree of freedom less
  // than there are values.
  double mean = 0, low = 0, high = 0;
};

struct LabResult {
  ExperimentSummary experiment;
  LabForm form = LabForm::brief;
  std::string out;  // the folder with result.json, table.md and chart.svg
  std::vector<LabPoint> points;
  std::vector<Conclusion> conclusions;  // one for each claim
  double seconds = 0;                   // of all runs
  bool stopped = false;                 // the callback stopped it; there are no conclusions
};

// One run: a side of the comparison, a point of the axis, a learning rate and a seed.
struct LabRun {
  std::string arm;
  double x = 0;
  double rate = 0;  // 0 = nothing is trained
  uint64_t seed = 1;
};

// A value that a run measured. Its series is the arm, unless the run measures several.
struct LabReading {
  std::string series;
  double x = 0, y = 0;
};

// The runs of one experiment, with the text that they read. Cheap to copy.
class LabBench {
 public:
  // Throws the errors of run_experiment() that concern the name and the options.
  static LabBench open(const std::string& name, const LabOptions& options);
  // Throws Failed if a value is not finite.
  std::vector<LabReading> measure(const LabRun& run) const;
  // Describes the experiment, the options and the text: equal for equal runs. JSON.
  std::string key() const;

  struct Parts;  // internals
  const Parts& parts() const { return *parts_; }

 private:
  explicit LabBench(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

// Measures runs that do not depend on one another, such as several at once on several machines.
// Calls `done` once for each, with its index and its seconds, from any thread, one call at a time.
// May return earlier: the experiment then counts as stopped.
using LabMeasured =
    std::function<void(size_t run, const std::vector<LabReading>& readings, double seconds)>;
using MeasureLabRuns =
    std::function<void(const std::vector<LabRun>& runs, const LabMeasured& done)>;

struct LabProgress {
  int64_t run = 0, runs = 0;  // finished runs, and all; tuning adds runs
  std::string what;           // the run that begins: "lstm, 48, seed 2"
};

// Runs the experiment `name`, or the runs that `options.out` lacks, and writes its results there.
// `progress` is called before each run, on the caller's thread; return false to stop. If `measure`
// is given, it measures the runs instead of LabBench, and `progress` is not called. Throws
// InvalidArgument if the name is unknown, an option is out of range, text is missing, or the folder
// has runs of other options; BadFile if a file cannot be read; Failed if one cannot be written or
// another process uses the folder.
LabResult run_experiment(const std::string& name, const LabOptions& options,
                         const std::function<bool(const LabProgress&)>& progress = {},
                         const MeasureLabRuns& measure = {});

// Decides about the claims of a result.json again, from its values, by the rule of this program; no
// run is repeated and no file is written. All conclusions are voided if the rule in the file, or
// its hash, differs from that of the program. Throws BadFile if the file is not the result of an
// experiment of this program.
LabResult judge_result(const std::string& path);

}  // namespace fovea
