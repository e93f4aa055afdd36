#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuning/job.h"

namespace fovea::tuning {

// Appends an event to a file of JSON lines, in the format of OpenAI's API. `data` is null for a
// message and an object for metrics. An error in writing it does not end the job.
void append_event(const std::string& path, const char* level, const std::string& message,
                  const Json& data = nullptr);
// Returns the events of a file, oldest first; none if the file does not exist.
std::vector<Json> read_events(const std::string& path);

// Reads the new lines of the log.jsonl of a training run and makes events of them.
class TrainingLog {
 public:
  struct Losses {
    std::optional<double> training, validation;
  };

  // Continues after the steps that `events` has already.
  TrainingLog(std::string log, std::string events, const Job& job);
  void read();

  // Returns the losses at the last step of the run, or at a checkpoint.
  Losses losses(int64_t step) const;
  int64_t tokens() const { return tokens_; }  // processed so far

 private:
  void take(const nlohmann::json& entry);

  const std::string log_, events_;
  const int64_t steps_, interval_;                   // in steps; of the run, and of checkpoints
  std::streamoff read_ = 0;                          // bytes
  int64_t last_training_ = 0, last_validation_ = 0;  // steps of the last events
  int64_t tokens_ = 0;
  std::map<int64_t, Losses> losses_;
};

}  // namespace fovea::tuning
