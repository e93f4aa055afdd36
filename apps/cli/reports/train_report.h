#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "fovea/train.h"
#include "terminal/progress.h"

namespace fovea::cli {

// What a run will be, as a table for people and as JSON.
std::string plan_table(const TrainPlan& plan, const std::string& out);
std::string plan_json(const TrainPlan& plan, const std::string& out);

// The run as it goes, on standard error.
class TrainReport {
 public:
  void reading(double fraction);  // of the texts, before the plan
  void step(const TrainProgress& progress);
  void end();

 private:
  ProgressLine line_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> validation_;
  std::vector<std::pair<std::string, double>> figures_;
};

std::string result_text(const TrainResult& result, const TrainOptions& options,
                        const TrainPlan& plan);
std::string result_json(const TrainResult& result, const TrainOptions& options,
                        const TrainPlan& plan);

// The command that resumes an interrupted run of `fovea VERB`, and the one that trains twice as
// long.
std::string resume_command(const std::string& verb, const std::vector<std::string>& arguments);
std::string longer_command(const std::vector<std::string>& arguments, int64_t steps,
                           const std::vector<std::string>& steps_spellings);

// Fit for pasting into a POSIX shell.
std::string shell_quoted(const std::string& word);

}  // namespace fovea::cli
