#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

struct Predictions;  // internals, for the library only

// A metric of an evaluation, such as loss or accuracy.
struct Metric {
  std::string name;   // in JSON, in log.jsonl and for TrainOptions::best_by: "bits_per_byte"
  std::string title;  // in tables: "bits per byte"
  std::string unit;   // in tables, after the value: "nats per token"; empty = none
  int decimals;       // in tables
  bool greater_is_better;
  // No value if the predictions lack what the metric needs, such as translations.
  std::optional<double> (*value)(const Predictions&);
  std::string signature = {};  // the exact computation, as sacrebleu writes it; empty = none
};

// Values by the names of their metrics.
using MetricValues = std::vector<std::pair<std::string, double>>;
std::optional<double> value_of(const MetricValues& values, std::string_view name);

// A kind of evaluation: the models and the data that it applies to, and its metrics.
struct EvaluationTask {
  std::string name;             // Evaluation::objective and TrainPlan::objective
  std::string models, data;     // such as "encoder-decoders" and "pairs of texts"
  std::vector<Metric> loss;     // the loss and what follows from it; empty = the task has none
  std::vector<Metric> metrics;  // all others
  std::string decisive;         // the metric that selects the best weights in training
};

// Returns all evaluations of fovea: `fovea train`, `fovea eval` and `fovea embed --evaluate`
// measure and print the metrics listed here.
const std::vector<EvaluationTask>& evaluation_tasks();
// Throws InvalidArgument if there is no task of this name.
const EvaluationTask& evaluation_task(std::string_view name);

}  // namespace fovea
