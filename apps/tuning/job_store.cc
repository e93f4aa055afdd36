#include "tuning/job_store.h"

#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "tuning/job_events.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

constexpr const char* kJobPrefix = "ftjob-";

}  // namespace

JobStore::JobStore(std::string folder) : folder_(std::move(folder)) {
  make_directories(folder_ + "/jobs");
  for (const std::string& id : list_folders(folder_ + "/jobs")) {
    const std::string record = folder_ + "/jobs/" + id + "/job.json";
    if (!is_id(id, kJobPrefix) || !is_file(record)) continue;
    Job job = read_job(read_file(record), record);
    if (job.id != id || !jobs_.emplace(job.number, job).second)
      fovea::fail(ErrorKind::BadFile, "{}: has the id or the number of another job", record);
  }
}

Job& JobStore::add(Job job) {
  job.id = random_id(kJobPrefix);
  job.number = jobs_.empty() ? 0 : jobs_.rbegin()->first + 1;
  job.created = std::time(nullptr);
  make_directories(path(job, ""));
  save(job);
  return jobs_[job.number] = std::move(job);
}

Job* JobStore::find(const std::string& id) {
  for (auto& [number, job] : jobs_)
    if (job.id == id) return &job;
  return nullptr;
}

const Job* JobStore::find(const std::string& id) const {
  return const_cast<JobStore*>(this)->find(id);
}

std::string JobStore::relative(const Job& job, const std::string& name) {
  return "jobs/" + job.id + "/" + name;
}

std::string JobStore::path(const Job& job, const std::string& name) const {
  return folder_ + "/" + relative(job, name);
}

void JobStore::save(const Job& job) const {
  write_file_atomically(path(job, "job.json"), write_job(job));
}

void JobStore::set_status(Job& job, JobStatus status) {
  if (!may_become(job.status, status))
    fovea::fail(ErrorKind::Internal, "{}: is {}, cannot become {}", job.id, name_of(job.status),
                name_of(status));
  job.status = status;
  if (is_final(status)) job.finished = std::time(nullptr);
  save(job);
}

void JobStore::fail(Job& job, JobError error) {
  say(job, "error", error.message);
  job.error = std::move(error);
  set_status(job, JobStatus::failed);
}

void JobStore::say(const Job& job, const char* level, const std::string& message) const {
  append_event(path(job, "events.jsonl"), level, message);
}

}  // namespace fovea::tuning
