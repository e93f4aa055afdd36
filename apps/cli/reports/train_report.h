#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "fovea/train/train.h"
#include "options/options.h"
#include "terminal/progress.h"

namespace fovea::cli {

// Formats the plan of a run as a table for people, and as JSON.
std::string plan_table(const train::TrainPlan& plan, const std::string& out);
std::string plan_json(const train::TrainPlan& plan, const std::string& out);

// Reports the progress of a run on standard error.
class TrainReport {
 public:
  void reading(double fraction);  // fraction of the text read, before the plan
  void step(const train::TrainProgress& progress);
  void pause(train::Pause kind, double seconds);  // expected to take this time
  void end();

 private:
  ProgressLine line_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<double> validation_;
  std::string course_;  // the rest of the last line
  double fraction_ = 0;
  bool pausing_ = false;
  std::string reward_;  // of the last batch of answers
  std::vector<std::pair<std::string, double>> metrics_;
};

// Returns the end of the sentence "The model is in DIR" if a run ends worse than it began.
std::string kept_start_text(const train::TrainResult& result);
std::string result_text(const train::TrainResult& result, const train::TrainOptions& options,
                        const train::TrainPlan& plan);
std::string result_json(const train::TrainResult& result, const train::TrainOptions& options,
                        const train::TrainPlan& plan);

// Returns the arguments of a run, as typed or recorded, for log.jsonl.
std::vector<std::string> given_arguments(const OptionTable& table);

// Returns the command that resumes an interrupted run of `fovea VERB`.
std::string resume_command(const std::string& verb, const std::vector<std::string>& arguments);
// Returns the `fovea train` command that continues a run of `steps` steps to twice as many.
// `steps_spellings` are the spellings of --steps, which the command replaces.
std::string longer_command(const std::string& verb, const std::vector<std::string>& arguments,
                           int64_t steps, const std::vector<std::string>& steps_spellings);

// Quotes a word for a POSIX shell.
std::string shell_quoted(const std::string& word);

}  // namespace fovea::cli
