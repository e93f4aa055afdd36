#pragma once

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "jobs/ranks.h"

namespace fovea::jobs {

using Task = std::function<Ranks::Json(const Ranks::Json& task)>;  // returns the task's result
using TaskDone = std::function<void(size_t task, const Ranks::Json& result)>;

// Distributes tasks from rank 0, which computes too, to the other ranks, one at a time to each.
// The other ranks run help_with_tasks().
class RankTasks {
 public:
  // `key` describes the work; the ranks must have the same one.
  RankTasks(const Ranks& ranks, std::string key) : ranks_(ranks), key_(std::move(key)) {}

  // Returns when all tasks are computed. Calls `done` for each, with its index, from any thread,
  // one call at a time. Throws BadFile if the key of another rank differs.
  void run(const std::vector<Ranks::Json>& tasks, const Task& compute, const TaskDone& done);
  void end();  // waits for the other ranks, and ends their help_with_tasks()

 private:
  // Reads a message of another rank, which then waits for a task. Returns whether it was a result.
  bool read(const Ranks::Message& message, const TaskDone& done);
  // Sends tasks to the other ranks until there are no more, or until `failed`.
  void serve(const std::vector<Ranks::Json>& tasks, const std::function<size_t()>& take,
             const TaskDone& done, const std::stop_token& failed);

  const Ranks& ranks_;
  std::string key_;
  std::deque<int> waiting_;  // ranks that have no task
};

// Computes the tasks that rank 0 sends until it ends.
void help_with_tasks(const Ranks& ranks, const std::string& key, const Task& compute);

}  // namespace fovea::jobs
