#pragma once

#include <functional>
#include <string>
#include <vector>

#include "jobs/rank_tasks.h"
#include "lab/lab.h"

namespace fovea::cli {

// The runs of an experiment, divided among the ranks of a job.
class LabRanks {
 public:
  using Measure = std::function<std::vector<LabReading>(const LabRun&)>;

  // `key` describes the runs; the ranks must have the same one. `measure` measures one of them.
  LabRanks(const jobs::Ranks& ranks, const std::string& key, Measure measure);

  // On ranks other than 0: measures the runs that rank 0 sends until it ends.
  void help() const;
  // On rank 0: measures runs on all ranks.
  MeasureLabRuns on_all();
  void end() { tasks_.end(); }

 private:
  const jobs::Ranks& ranks_;
  std::string key_;
  jobs::Task measure_;
  jobs::RankTasks tasks_;
};

}  // namespace fovea::cli
