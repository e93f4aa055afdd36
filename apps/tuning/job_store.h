#pragma once

#include <map>
#include <string>

#include "tuning/job.h"

namespace fovea::tuning {

// The jobs of a folder: jobs/ID/ with job.json, events.jsonl and the files of training. A change is
// written before the function returns. Not safe to call from several threads at once.
class JobStore {
 public:
  // Reads the jobs in `folder`/jobs. Throws BadFile if one is damaged.
  explicit JobStore(std::string folder);

  Job& add(Job job);  // sets the id, the number and the time
  Job* find(const std::string& id);
  const Job* find(const std::string& id) const;
  std::map<int64_t, Job>& all() { return jobs_; }  // by number, oldest first
  const std::map<int64_t, Job>& all() const { return jobs_; }

  // Returns the path of a file of the job, relative to the folder.
  static std::string relative(const Job& job, const std::string& name);
  std::string path(const Job& job, const std::string& name) const;

  void save(const Job& job) const;
  // Throws Internal if the job may not become `status`.
  void set_status(Job& job, JobStatus status);
  void fail(Job& job, JobError error);
  void say(const Job& job, const char* level, const std::string& message) const;  // adds an event

 private:
  const std::string folder_;
  std::map<int64_t, Job> jobs_;
};

}  // namespace fovea::tuning
