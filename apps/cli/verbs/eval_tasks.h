#pragma once

#include "fovea/evaluate_tasks.h"
#include "options/options.h"

namespace fovea::cli {

// The evaluation of `eval --tasks`.
class TasksRequest {
 public:
  void declare(OptionTable& table);
  // Evaluates, prints the result and returns the exit code.
  int run(const model::Model& model, int64_t limit, bool json);

 private:
  TaskData data_;
};

}  // namespace fovea::cli
