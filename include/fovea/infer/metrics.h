#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::infer {

struct Predictions;  // internals, for the library only

// A metric of an evaluation, such as loss or accuracy.
struct Metric {
  std::string name;   // in JSON, in log.jsonl and in TrainOptions::best_by: "bits_per_byte"
  std::string title;  // in tables: "bits per byte"
  std::string unit;   // in tables, after the value: "nats per token"; empty = none
  int decimals;       // in tables
  bool greater_is_better;
  // Returns no value if the predictions lack what the metric needs, such as translations.
  std::optional<double> (*value)(const Predictions&);
  std::string signature = {};  // the exact computation, as sacrebleu writes it; empty = none
};

// Pairs of a metric's name and its value.
using MetricValues = std::vector<std::pair<std::string, double>>;
// Returns the value of the metric `name`, if it is in the list.
std::optional<double> value_of(const MetricValues& values, std::string_view name);

// The scores of one label, or of the entities of one type; 0 where a quotient is undefined.
struct LabelScores {
  std::string name;
  double precision = 0, recall = 0, f1 = 0;
  int64_t support = 0;  // number of texts or words with this label, or of entities of this type
};

// The scores of each label of a classifier, as scikit-learn computes them; or of each type of
// entity, as seqeval does, if the labels of words mark entities (B-PER, I-PER, O).
struct LabelReport {
  std::vector<LabelScores> labels;
  // [i][j]: number of texts or words with label i for which the model predicts label j; empty for
  // several labels per text, for entities, and for more than 50 labels.
  std::vector<std::vector<int64_t>> confusion;
};

// Returns JSON {"labels": {NAME: {"precision", "recall", "f1", "support"}, ...}, "confusion":
// [[...], ...]}; without "confusion" if it is empty.
std::string label_json(const LabelReport& report);

// A kind of evaluation: the models and the data that it applies to, and its metrics.
struct EvaluationTask {
  std::string name;             // as in Evaluation::objective: "next_token"
  std::string models, data;     // such as "encoder-decoders" and "pairs of texts"
  std::vector<Metric> loss;     // the loss and metrics derived from it; empty = no loss
  std::vector<Metric> metrics;  // all others
  std::string decisive;         // the default metric that selects the best weights in training
};

// Returns all evaluation tasks; valid until the program ends. `fovea train`, `fovea eval` and
// `fovea embed --evaluate` measure and print the metrics of these tasks.
const std::vector<EvaluationTask>& evaluation_tasks();
// Returns the task `name`. Throws InvalidArgument if there is no task of this name.
const EvaluationTask& evaluation_task(std::string_view name);

// The results of evaluate() (fovea/evaluate.h).
struct Evaluation {
  std::string objective;  // the name of the EvaluationTask: "next_token", "masked", ...
  double loss = 0;        // mean negative log-likelihood per predicted token, in nats
  double perplexity = 0;  // exp(loss)
  // Bits per byte of UTF-8 text, comparable across tokenizers; 0 = not applicable.
  double bits_per_byte = 0;
  int64_t tokens = 0;  // predicted tokens; for classifiers, labels
  int64_t bytes = 0;   // bytes of the predicted text; 0 = not applicable
  // Pairs, labelled texts or conversations; 0 for windows of a text.
  int64_t sequences = 0;
  int64_t unknown = 0;                     // next_token: unknown tokens in the text
  MetricValues metrics = {};               // those of evaluation_task(objective) that apply
  std::optional<LabelReport> labels = {};  // classifiers: the scores of each label
  std::vector<std::string> notes = {};     // messages, such as the number of skipped texts
};

}  // namespace fovea::infer
