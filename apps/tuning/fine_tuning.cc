#include "tuning/fine_tuning.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <random>

#include "base/fields.h"
#include "fovea/train/train.h"

namespace fovea::tuning {
namespace {

constexpr int64_t kEpochs = 3, kBatch = 4;  // for "auto"

// Answers that are generated once are usually enough.
int64_t usual_epochs(JobMethod method) { return method == JobMethod::supervised ? kEpochs : 1; }
// How often the child processes are looked at.
constexpr std::chrono::milliseconds kPeriod{100}, kIdlePeriod{1000};
// A cancelled job is killed after this time. A paused one has time for its current step and the
// snapshot.
constexpr std::chrono::seconds kCancelGrace{10}, kPauseGrace{600};
constexpr size_t kMostSuffixBytes = 64;
constexpr const char* kAdapterConfig = "/adapter_config.json";  // an adapter has this file
constexpr const char* kDeleted = "/deleted";                    // a deleted model has this file

// Creates the folder, readable only by the user, and returns its absolute path.
std::string make_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  if (!is_folder(folder)) {
    make_directories(folder);
    std::error_code ignored;
    fs::permissions(folder, fs::perms::owner_all, ignored);
  }
  return fs::absolute(folder).lexically_normal();
}

RunnerOptions with_folder(RunnerOptions options) {
  options.folder = make_folder(options.folder);
  return options;
}

bool is_suffix(const std::string& suffix) {
  return suffix.size() <= kMostSuffixBytes && std::all_of(suffix.begin(), suffix.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

FineTuning::FineTuning(RunnerOptions options)
    : options_(with_folder(std::move(options))),
      lock_(options_.folder),
      files_(options_.folder + "/files"),
      jobs_(options_.folder),
      runner_(options_, jobs_) {
  runner_.adopt();
}

void FineTuning::start(Serve serve, Warn warn) {
  serve_ = std::move(serve);
  warn_ = std::move(warn);
  for (const auto& [number, job] : jobs_.all())
    if (job.status == JobStatus::succeeded && runner_.base_of(job) != nullptr) try_to_serve(job);
  thread_ = std::thread([this] { work(); });
}

void FineTuning::stop(std::chrono::seconds grace) {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    grace_ = grace;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void FineTuning::warn(const std::string& message) const {
  if (warn_) warn_(message);
}

// The child processes end with this thread, which starts them.
void FineTuning::work() {
  std::unique_lock lock(mutex_);
  bool stopped = false;
  while (!stopping_ || !runner_.idle()) {
    if (stopping_ && !stopped) runner_.stop_all(grace_);
    stopped = stopping_;
    try {
      const std::vector<std::string> trained = runner_.advance(!stopping_);
      lock.unlock();
      for (const std::string& id : trained) try_to_serve(*job(id));
      lock.lock();
      finish(trained);
    } catch (const Error& error) {  // a file cannot be written
      if (!lock.owns_lock()) lock.lock();
      warn(error.what());
    }
    if (!stopping_ || !runner_.idle())
      changed_.wait_for(lock, runner_.idle() ? kIdlePeriod : kPeriod);
  }
}

// A job may have been cancelled while its result was opened.
void FineTuning::finish(const std::vector<std::string>& trained) {
  for (const std::string& id : trained) {
    Job& job = *jobs_.find(id);
    if (job.status != JobStatus::running) continue;
    jobs_.say(job, "info", "New fine-tuned model created");
    jobs_.say(job, "info", "The job has successfully completed");
    jobs_.set_status(job, JobStatus::succeeded);
  }
}

void FineTuning::try_to_serve(const Job& job) {
  if (!serve_) return;
  for (const TunedModel& model : models_of(job)) {
    try {
      serve_(model);
    } catch (const Error& error) {
      jobs_.say(job, "warn", "The model " + model.name + " cannot be served");
      warn(model.name + ": is not served: " + error.what());
    }
  }
}

// Returns the result and its checkpoints, each of which is an adapter too. Those of older versions
// are only snapshots.
std::vector<TunedModel> FineTuning::models_of(const Job& job) const {
  const std::string folder = jobs_.path(job, "model"), base = job.request.model;
  std::vector<TunedModel> all;
  if (!is_file(folder + kDeleted)) all.push_back({job.result_name(), base, folder});
  for (const Checkpoint& checkpoint : existing_checkpoints(job)) {
    const std::string of_step = fmt::format("{}/checkpoint-{}", folder, checkpoint.step);
    if (is_file(of_step + kAdapterConfig))
      all.push_back({checkpoint.name_in(job.result_name()), base, of_step});
  }
  return all;
}

// The record of the job stays, as do its other results.
bool FineTuning::remove_model(const std::string& name) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, job] : jobs_.all()) {
    if (job.status != JobStatus::succeeded) continue;
    for (const TunedModel& model : models_of(job)) {
      if (model.name != name) continue;
      for (const char* const file : {kAdapterConfig, "/adapter_model.safetensors"})
        std::filesystem::remove(model.folder + file);
      write_file_atomically(model.folder + kDeleted, "");
      jobs_.say(job, "info", "The model " + name + " was deleted");
      return true;
    }
  }
  return false;
}

StoredFile FineTuning::upload(const std::string& label, std::string_view content,
                              const std::string& purpose) {
  const std::lock_guard lock(uploading_);
  const uint64_t used = runner_.used_bytes();
  check_field(used + content.size() <= options_.most_bytes, "file",
              "has {} bytes; of {} bytes for files and jobs, {} are used", content.size(),
              options_.most_bytes, used);
  return files_.add(label, content, purpose);
}

void FineTuning::remove_file(const std::string& id) {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, job] : jobs_.all()) {
    const bool uses = job.request.training_file == id || job.request.validation_file == id;
    check_field(is_final(job.status) || !uses, "file_id",
                "is used by the job {}, which is {}; expected a file of finished jobs", job.id,
                name_of(job.status));
  }
  files_.remove(id);
}

void FineTuning::check_rewards(const JobRequest& request) const {
  std::vector<std::string> names;
  for (const BaseModel& judge : options_.judges) names.push_back(judge.name);
  check_field(request.method != JobMethod::reinforcement || !request.rewards.empty(),
              "method.reinforcement.grader", "is missing; expected one");
  for (const JobReward& reward : request.rewards) {
    const bool known =
        reward.model.empty() || std::find(names.begin(), names.end(), reward.model) != names.end();
    check_field(known, "method.reinforcement.grader",
                "the model {} gives no rewards here; expected {}", reward.model,
                names.empty() ? "other graders" : fmt::format("{}", fmt::join(names, " or ")));
  }
}

void FineTuning::check_file(const char* field, const std::string& id) const {
  const std::optional<StoredFile> file = files_.find(id);
  check_field(file.has_value(), field, "no such file; expected the id of an uploaded file");
  check_field(file->purpose == "fine-tune", field, "is a file for {}; expected one for fine-tune",
              file->purpose);
}

void FineTuning::check_request(const JobRequest& request) const {
  check_rewards(request);
  std::vector<std::string> names;
  for (const BaseModel& base : options_.bases) names.push_back(base.name);
  check_field(std::find(names.begin(), names.end(), request.model) != names.end(), "model",
              "{} cannot be fine-tuned here; expected {}", request.model, fmt::join(names, " or "));
  check_file("training_file", request.training_file);
  if (!request.validation_file.empty()) check_file("validation_file", request.validation_file);
  check_field(is_suffix(request.suffix), "suffix",
              "expected at most {} letters, digits, hyphens, underscores and full stops",
              kMostSuffixBytes);
  size_t unfinished = 0;
  for (const auto& [number, job] : jobs_.all()) unfinished += is_final(job.status) ? 0 : 1;
  check_field(unfinished < kMostUnfinished, "training_file",
              "{} jobs are waiting; expected fewer: wait or cancel one", unfinished);
  check_field(jobs_.all().size() < kMostJobs, "training_file",
              "the server has {} jobs; the operator must remove some", kMostJobs);
}

Job FineTuning::create(const JobRequest& request) {
  const std::lock_guard lock(mutex_);
  check_request(request);
  Job job;
  job.request = request;
  job.epochs = request.epochs.value_or(usual_epochs(request.method));
  job.batch = request.batch.value_or(kBatch);
  job.rate_multiplier = request.rate_multiplier.value_or(1);
  constexpr uint32_t kMostSeed = 0x7fffffff;
  job.seed = request.seed.value_or(std::random_device()() & kMostSeed);
  const Job& added = jobs_.add(std::move(job));
  jobs_.say(added, "info", "Created fine-tuning job: " + added.id);
  changed_.notify_all();
  return added;
}

std::vector<Job> FineTuning::jobs() const {
  const std::lock_guard lock(mutex_);
  std::vector<Job> all;
  for (const auto& [number, job] : jobs_.all()) all.push_back(job);
  std::reverse(all.begin(), all.end());
  return all;
}

std::optional<Job> FineTuning::job(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const Job* const found = jobs_.find(id);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

// Requires the lock.
Job FineTuning::change(const std::string& id, JobStatus status, const std::string& event) {
  Job& job = *jobs_.find(id);
  check_field(may_become(job.status, status), "fine_tuning_job_id",
              "the job is {}, so it cannot become {}", name_of(job.status), name_of(status));
  jobs_.say(job, "info", event);
  jobs_.set_status(job, status);
  changed_.notify_all();
  return job;
}

Job FineTuning::cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Job job = change(id, JobStatus::cancelled, "Fine-tuning job cancelled");
  runner_.stop(id, kCancelGrace);
  return job;
}

Job FineTuning::pause(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Job job = change(id, JobStatus::paused, "Fine-tuning job paused");
  runner_.stop(id, kPauseGrace);
  return job;
}

Job FineTuning::resume(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const Job* const job = jobs_.find(id);
  check_field(job->status == JobStatus::paused, "fine_tuning_job_id",
              "the job is {}; expected a paused job", name_of(job->status));
  return change(id, JobStatus::queued, "Fine-tuning job resumed");
}

std::vector<Json> FineTuning::events(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> events = read_events(jobs_.path(*jobs_.find(id), "events.jsonl"));
  std::reverse(events.begin(), events.end());
  return events;
}

std::vector<Checkpoint> FineTuning::checkpoints(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  return existing_checkpoints(*jobs_.find(id));
}

std::vector<Checkpoint> FineTuning::existing_checkpoints(const Job& job) const {
  const std::vector<int64_t> steps = train::snapshots(jobs_.path(job, "model"));
  std::vector<Checkpoint> there;
  std::copy_if(job.checkpoints.rbegin(), job.checkpoints.rend(), std::back_inserter(there),
               [&](const Checkpoint& checkpoint) {
                 return std::binary_search(steps.begin(), steps.end(), checkpoint.step);
               });
  return there;
}

}  // namespace fovea::tuning
