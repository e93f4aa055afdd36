#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "lab/lab.h"

namespace fovea {

// A scaling law of a text: trains small decoders of several sizes for several lengths, and fits
// L(N, D) = E + A / N^alpha + B / D^beta (Hoffmann et al. 2022, eq. 2) to their losses.

struct ScaleOptions {
  std::vector<std::string> data;  // text files, directories or JSON lines; the end is held out
  std::string out = "scale";      // folder of the results; its runs are not repeated
  std::vector<int64_t> widths = {16, 32, 64, 128};    // of the models, ascending
  std::vector<int64_t> steps = {100, 200, 400, 800};  // of the runs, ascending
  int64_t layers = 2, batch = 16, length = 64;        // of every model, and of every step
  double learning_rate = 2e-3;  // at width 64; proportional to 1 / sqrt(width)
  double budget = 0;            // FLOPs to plan for; 0 = 100 times those of the largest run
  uint64_t seed = 1;
};
void visit(ScaleOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// A number with percentiles 2.5 and 97.5 of its values in resampled fits.
struct FittedNumber {
  double value = 0, low = 0, high = 0;
};

struct ScalingLaw {
  FittedNumber floor, size_factor, size_exponent, data_factor,
      data_exponent;  // E, A, alpha, B, beta
};

struct ScaleRun {
  double parameters = 0;   // N, without embeddings
  double tokens = 0;       // D
  double loss = 0;         // on the held-out part, in nats per character
  FittedNumber predicted;  // by the law of all runs but those of the largest model
  bool left_out = false;   // a run of the largest model
};

struct ScaleResult {
  std::vector<ScaleRun> runs;
  ScalingLaw law;       // of all runs
  double error = 0;     // mean of |predicted - loss| / loss of the runs that were left out
  int64_t covered = 0;  // of these runs, those whose loss is within the interval
  // What to train for the budget, where 6 N D = budget, and the loss by the law.
  double budget = 0;
  FittedNumber parameters, tokens, loss;
  bool stopped = false;  // the callback stopped it; there is no law
};

// The runs of which a law is the fit, with the text that they read.
class ScaleBench {
 public:
  explicit ScaleBench(const ScaleOptions& options);
  ~ScaleBench();
  std::vector<LabReading> measure(const LabRun& run) const;
  std::string key() const;  // describes the options and the text: equal for equal runs

  struct Parts;  // internals
  const Parts& parts() const { return *parts_; }

 private:
  std::unique_ptr<const Parts> parts_;
};

// Writes result.json, table.md and chart.svg to options.out. `progress` is called before each run
// with the finished runs and all; return false to stop. If `measure` is given, it measures the runs
// instead, and `progress` is not called. Throws InvalidArgument if an option is out of range, or if
// there are fewer than 4 widths or 3 numbers of steps; and the errors of run_experiment().
ScaleResult fit_scaling_law(const ScaleOptions& options,
                            const std::function<bool(int64_t run, int64_t runs)>& progress = {},
                            const MeasureLabRuns& measure = {});

}  // namespace fovea
