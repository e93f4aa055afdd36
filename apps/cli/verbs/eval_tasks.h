#pragma once

#include "fovea/evaluate_tasks.h"
#include "options/options.h"

namespace fovea::cli {

// The evaluation of `eval --tasks`.
class TasksRequest {
 public:
  void declare(OptionTable& table);
  // Fetches the data sets of named tasks that are only at the Hugging Face Hub (fetch_model.h).
  void fetch(bool yes) const;
  // Evaluates, prints the result and returns the exit code.
  int run(const model::Model& model, int64_t limit, bool json);

 private:
  std::vector<std::string> tasks() const;
  int run_one(const model::Model& model, const TaskData& data, bool named, bool json) const;

  TaskData data_;
};

}  // namespace fovea::cli
