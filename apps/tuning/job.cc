#include "tuning/job.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/json.h"

namespace fovea::tuning {
namespace {

constexpr const char* kStatusNames[] = {"validating_files", "queued", "running",  "paused",
                                        "succeeded",        "failed", "cancelled"};

constexpr const char* kMethodNames[] = {"supervised", "dpo", "reinforcement"};

template <class T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const JobReward& reward) {
  return {{"weight", reward.weight},
          {"check", reward.check},
          {"schema", reward.schema},
          {"model", reward.model}};
}

Json json_of(const JobRequest& request) {
  Json rewards = Json::array();
  for (const JobReward& reward : request.rewards) rewards.push_back(json_of(reward));
  return {{"model", request.model},
          {"training_file", request.training_file},
          {"validation_file", request.validation_file},
          {"suffix", request.suffix},
          {"epochs", value_or_null(request.epochs)},
          {"batch", value_or_null(request.batch)},
          {"rate_multiplier", value_or_null(request.rate_multiplier)},
          {"seed", value_or_null(request.seed)},
          {"metadata", request.metadata},
          {"method", name_of(request.method)},
          {"beta", value_or_null(request.beta)},
          {"compute_multiplier", value_or_null(request.compute_multiplier)},
          {"evaluation_interval", value_or_null(request.evaluation_interval)},
          {"evaluation_samples", value_or_null(request.evaluation_samples)},
          {"answer_tokens", value_or_null(request.answer_tokens)},
          {"rewards", rewards},
          {"grader", request.grader}};
}

template <class Values>
size_t index_in(const Values& names, const std::string& text, const std::string& name,
                const char* what) {
  const auto found = std::find(std::begin(names), std::end(names), text);
  if (found == std::end(names))
    fail(ErrorKind::BadFile, "{}: {} is {}; expected one of a job", name, what, text);
  return static_cast<size_t>(found - std::begin(names));
}

// Jobs of older versions have only the method supervised.
void read_method(const nlohmann::json& json, const std::string& name, JobRequest& request) {
  if (!json.contains("method")) return;
  request.method = static_cast<JobMethod>(
      index_in(kMethodNames, get_string(json, "method", name), name, "method"));
  request.beta = find_float(json, "beta", name);
  request.compute_multiplier = find_float(json, "compute_multiplier", name);
  request.evaluation_interval = find_int(json, "evaluation_interval", name, 1);
  request.evaluation_samples = find_int(json, "evaluation_samples", name, 1);
  request.answer_tokens = find_int(json, "answer_tokens", name, 1);
  for (const auto& reward : json.value("rewards", nlohmann::json::array()))
    request.rewards.push_back({get_float(reward, "weight", name), get_string(reward, "check", name),
                               reward.value("schema", Json()), get_string(reward, "model", name)});
  if (json.contains("grader")) request.grader = json["grader"];
}

JobRequest request_of(const nlohmann::json& json, const std::string& name) {
  JobRequest request;
  request.model = get_string(json, "model", name);
  request.training_file = get_string(json, "training_file", name);
  request.validation_file = get_string(json, "validation_file", name);
  request.suffix = get_string(json, "suffix", name);
  request.epochs = find_int(json, "epochs", name, 1);
  request.batch = find_int(json, "batch", name, 1);
  request.rate_multiplier = find_float(json, "rate_multiplier", name);
  request.seed = find_int(json, "seed", name);
  if (json.contains("metadata")) request.metadata = json["metadata"];
  read_method(json, name, request);
  return request;
}

Json json_of(const Checkpoint& checkpoint) {
  return {{"id", checkpoint.id},
          {"step", checkpoint.step},
          {"created", checkpoint.created},
          {"training_loss", value_or_null(checkpoint.training_loss)},
          {"validation_loss", value_or_null(checkpoint.validation_loss)}};
}

Checkpoint checkpoint_of(const nlohmann::json& json, const std::string& name) {
  return {get_string(json, "id", name), get_int(json, "step", name), get_int(json, "created", name),
          find_float(json, "training_loss", name), find_float(json, "validation_loss", name)};
}

JobStatus status_of(const std::string& text, const std::string& name) {
  return static_cast<JobStatus>(index_in(kStatusNames, text, name, "status"));
}

}  // namespace

const char* name_of(JobMethod method) { return kMethodNames[static_cast<int>(method)]; }

const char* name_of(JobStatus status) { return kStatusNames[static_cast<int>(status)]; }

bool is_final(JobStatus status) { return status >= JobStatus::succeeded; }

bool may_become(JobStatus from, JobStatus to) {
  using S = JobStatus;
  switch (to) {
    case S::validating_files: return false;
    // From running: the server restarted. From paused: the client resumes the job.
    case S::queued: return from == S::validating_files || from == S::running || from == S::paused;
    case S::running: return from == S::queued;
    case S::paused: return from == S::queued || from == S::running;
    case S::succeeded: return from == S::running;
    case S::failed:
    case S::cancelled: return !is_final(from);
  }
  return false;
}

std::string Job::result_name() const {
  constexpr size_t kDigits = 12;  // of the id
  return "ft:" + request.model + ":" + request.suffix + ":" + id.substr(id.find('-') + 1, kDigits);
}

std::string Checkpoint::name_in(const std::string& result) const {
  return fmt::format("{}:ckpt-step-{}", result, step);
}

std::string write_job(const Job& job) {
  Json json = {{"id", job.id},
               {"number", job.number},
               {"created", job.created},
               {"finished", job.finished},
               {"status", name_of(job.status)},
               {"request", json_of(job.request)},
               {"epochs", job.epochs},
               {"batch", job.batch},
               {"seed", job.seed},
               {"rate_multiplier", job.rate_multiplier},
               {"steps", job.steps},
               {"disk_bytes", job.disk_bytes},
               {"trained_tokens", job.trained_tokens},
               {"checkpoints", Json::array()}};
  for (const Checkpoint& checkpoint : job.checkpoints)
    json["checkpoints"].push_back(json_of(checkpoint));
  if (job.error)
    json["error"] = {{"code", job.error->code},
                     {"message", job.error->message},
                     {"parameter", job.error->parameter}};
  return pretty(json);
}

Job read_job(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  if (!json.is_object() || !json.contains("request") || !json.contains("checkpoints"))
    fail(ErrorKind::BadFile, "{}: is no job; expected the file of one", name);
  Job job;
  job.id = get_string(json, "id", name);
  job.number = get_int(json, "number", name, 0);
  job.created = get_int(json, "created", name);
  job.finished = get_int(json, "finished", name);
  job.status = status_of(get_string(json, "status", name), name);
  job.request = request_of(json["request"], name);
  job.epochs = get_int(json, "epochs", name, 1);
  job.batch = get_int(json, "batch", name, 1);
  job.seed = get_int(json, "seed", name);
  job.rate_multiplier = get_float(json, "rate_multiplier", name);
  job.steps = get_int(json, "steps", name, 0);
  job.disk_bytes = get_int(json, "disk_bytes", name, 0);
  job.trained_tokens = get_int(json, "trained_tokens", name, 0);
  for (const auto& checkpoint : json["checkpoints"])
    job.checkpoints.push_back(checkpoint_of(checkpoint, name));
  if (json.contains("error"))
    job.error = {get_string(json["error"], "code", name),
                 get_string(json["error"], "message", name),
                 get_string(json["error"], "parameter", name)};
  return job;
}

}  // namespace fovea::tuning
