#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/metrics.h"
#include "fovea/model/hub.h"
#include "fovea/model/model.h"

namespace fovea {

// Evaluation of a model on records, as lm-evaluation-harness does it (Gao et al. 2024).

struct TaskData {
  // A file of JSON lines. {"context", "choices", "gold"}: the model chooses the continuation of the
  // context with the greatest log-probability; `gold` is the index of the right one. {"context",
  // "target"}: the model continues the context greedily, and the text must equal the target;
  // optional "stop" (texts, default "\n\n"), "max_tokens" (256) and "metric": "rouge" instead of
  // "exact_match". Choices and exact matches need a decoder; rouge does not. Or a name of
  // task_names().
  std::string file = {};
  int64_t shots =
      0;  // records with their answers before each context: the first others of the file
  int64_t limit = 0;             // evaluate the first records only; 0 = all
  std::string delimiter = " ";   // between a context and its continuation
  std::string samples_out = {};  // file for a JSON line per record with its outputs; empty = none
};
void visit(TaskData& data, OptionVisitor& visitor);  // fovea/core/options.h

// The tasks of lm-evaluation-harness that have names here, with its prompts: "hellaswag", "mmlu",
// ... Their shots are the first of the data set, and of the same subject in mmlu.
std::vector<std::string> task_names();
// Returns the data set of a task at the Hugging Face Hub, which must be in the cache
// (fovea/model/hub.h) for evaluate_tasks(); nothing if no task has this name.
std::optional<model::HubName> task_data_set(const std::string& name);

struct TaskEvaluation {
  int64_t records = 0, choices = 0, generated = 0;  // all, and of each kind
  int64_t cut = 0;                                  // contexts whose beginning did not fit
  // "accuracy", "accuracy_per_character", "accuracy_per_byte" and "accuracy_per_token": of the
  // choice with the greatest log-probability, or log-probability / length of the continuation in
  // this unit; "exact_match"; "rouge_1", "rouge_2", "rouge_l" and "rouge_lsum" from 0 to 1. Each is
  // followed by its standard error, such as "accuracy_stderr", unless it is of one record.
  infer::MetricValues metrics;
};

// Throws BadFile, with file and line, if a record is invalid; InvalidArgument if an option is out
// of range or the model does not fit. `progress` receives the completed fraction, on the caller's
// thread; return false to stop, which throws Failed.
TaskEvaluation evaluate_tasks(const model::Model& model, const TaskData& data,
                              const std::function<bool(double fraction)>& progress = {});

}  // namespace fovea
