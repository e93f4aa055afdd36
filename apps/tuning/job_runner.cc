#include "tuning/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "fovea/train/train.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

using std::chrono::steady_clock;

constexpr std::streamoff kMostOutput = 1 << 20;  // bytes read of what a child process writes
constexpr const char *kPlan = "plan.json", *kPlanErrors = "plan.txt", *kResult = "result.json",
                     *kErrors = "training.txt", *kModel = "model";

}  // namespace

const BaseModel* JobRunner::base_of(const Job& job) const {
  for (const BaseModel& base : options_.bases)
    if (base.name == job.request.model) return &base;
  return nullptr;
}

uint64_t bytes_below(const std::string& folder) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  // A file may disappear while the folder is listed.
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const bool regular = fs::is_regular_file(entry->symlink_status(gone));
    const uint64_t size = regular ? fs::file_size(entry->path(), gone) : 0;
    if (!gone) bytes += size;
  }
  return bytes;
}

uint64_t JobRunner::used_bytes() const { return bytes_below(options_.folder); }

void JobRunner::adopt() {
  for (auto& [number, job] : jobs_.all()) {
    if (is_final(job.status)) continue;
    try {
      adopt(job);
    } catch (const Error&) {
      // The disk is full. The server starts, so that files can be deleted through it, and the job
      // has its new status in memory.
    }
  }
}

void JobRunner::adopt(Job& job) {
  if (base_of(job) == nullptr) {
    jobs_.fail(job, {"model_not_served", "model: " + job.request.model + " is not served any more",
                     "model"});
  } else if (job.status == JobStatus::running) {
    jobs_.set_status(job, JobStatus::queued);
    jobs_.say(job, "warn", "The server restarted; the job continues from its last snapshot");
  }
}

std::vector<std::string> JobRunner::advance(bool starts) {
  std::vector<std::string> trained;
  if (const auto code = poll(validation_)) {
    Job& job = *jobs_.find(validation_.job);
    validation_ = {};
    end_validation(job, *code);
  }
  const std::optional<int> code = poll(training_);
  if (training_.child && !training_.stopping) read_progress(*jobs_.find(training_.job));
  if (code) {
    Job& job = *jobs_.find(training_.job);
    job.trained_tokens = training_.log->tokens();
    training_ = {};
    if (*code == 0) {
      trained.push_back(job.id);
    } else {
      fail(job, *code, kErrors);
    }
  }
  if (!starts) return trained;
  if (!validation_.child) start_next(validation_, JobStatus::validating_files);
  // A trained job is running until the caller has served it.
  if (!training_.child && trained.empty()) start_next(training_, JobStatus::queued);
  return trained;
}

// Returns the exit code if the process ended and was not asked to.
std::optional<int> JobRunner::poll(Run& run) {
  if (!run.child) return std::nullopt;
  if (run.stopping && steady_clock::now() >= run.killed_at) run.child->kill();
  const std::optional<int> code = run.child->exit_code();
  if (!run.stopping) return code;
  if (code) run = {};
  return std::nullopt;
}

void JobRunner::start_next(Run& run, JobStatus status) {
  for (auto& [number, job] : jobs_.all()) {
    if (job.status != status) continue;
    if (status == JobStatus::queued) return start_training(job);
    jobs_.say(job, "info", "Validating the files");
    write_rewards(job);
    return start(run, job, validation_arguments(job, *base_of(job), options_.threads), kPlan);
  }
}

void JobRunner::start(Run& run, Job& job, const std::vector<std::string>& arguments,
                      const char* output) {
  const char* const errors = &run == &validation_ ? kPlanErrors : kErrors;
  try {
    run.child = std::make_unique<ChildProcess>(
        ChildCommand{options_.program, arguments, options_.folder, JobStore::relative(job, output),
                     JobStore::relative(job, errors)});
    run.job = job.id;
  } catch (const Error& error) {
    jobs_.fail(job, {"training_failed", error.what(), ""});
  }
}

void JobRunner::start_training(Job& job) {
  const uint64_t others = used_bytes() - bytes_below(jobs_.path(job, ""));
  if (others + static_cast<uint64_t>(job.disk_bytes) > options_.most_bytes) {
    return jobs_.fail(
        job, {"insufficient_storage",
              fmt::format("the job writes about {} MB; of {} MB for files and jobs, {} MB are used",
                          job.disk_bytes >> 20, options_.most_bytes >> 20, others >> 20),
              ""});
  }
  write_rewards(job);
  start(training_, job, training_arguments(job, *base_of(job), options_.threads), kResult);
  if (!training_.child) return;
  training_.log = std::make_unique<TrainingLog>(jobs_.path(job, std::string(kModel) + "/log.jsonl"),
                                                jobs_.path(job, "events.jsonl"), job);
  jobs_.say(job, "info", "Fine-tuning job started");
  jobs_.set_status(job, JobStatus::running);
}

// Writes the files that name the rewards of a job. The paths of models are those of this server.
void JobRunner::write_rewards(const Job& job) const {
  if (job.request.method != JobMethod::reinforcement) return;
  const std::vector<JobReward>& rewards = job.request.rewards;
  for (size_t n = 0; n < rewards.size(); ++n)
    if (!rewards[n].schema.is_null())
      write_file_atomically(jobs_.path(job, schema_name(n)), pretty(rewards[n].schema));
  write_file_atomically(jobs_.path(job, kRewards), rewards_config(job, options_.judges));
}

void JobRunner::end_validation(Job& job, int code) {
  if (code != 0) return fail(job, code, kPlanErrors);
  try {
    take_plan(job);
  } catch (const Error& error) {
    return jobs_.fail(job, {"training_failed", error.what(), ""});
  }
  jobs_.say(job, "info", "Files validated, moving job to queued state");
  jobs_.set_status(job, JobStatus::queued);
}

void JobRunner::take_plan(Job& job) {
  const std::string name = "the plan of the job";
  const nlohmann::json plan = parse_json(read(job, kPlan), name);
  job.steps = get_int(plan, "steps", name, 1);
  // A snapshot holds the adapter twice, and two moments in fp32. One more is written before the
  // oldest one is removed.
  constexpr int64_t kCopies = 1 + 4 * (kSnapshots + 1), kBytes = 4;
  job.disk_bytes = kCopies * kBytes * get_int(plan, "trained_parameters", name, 0);
}

void JobRunner::read_progress(Job& job) {
  // The log is read last: it has the losses of each snapshot that exists before.
  const std::vector<int64_t> steps = train::snapshots(jobs_.path(job, kModel));
  training_.log->read();
  bool added = false;
  for (const int64_t step : steps) {
    if (!job.checkpoints.empty() && step <= job.checkpoints.back().step) continue;
    const TrainingLog::Losses losses = training_.log->losses(step);
    // Pausing and stopping write snapshots within epochs, which have no losses.
    if (!losses.training) continue;
    job.checkpoints.push_back(
        {random_id("ftckpt-"), step, std::time(nullptr), losses.training, losses.validation});
    jobs_.say(job, "info", fmt::format("Checkpoint created at step {}", step));
    added = true;
  }
  if (added) jobs_.save(job);
}

void JobRunner::fail(Job& job, int code, const char* errors) {
  std::vector<BaseModel> models = options_.judges;
  models.push_back(*base_of(job));
  jobs_.fail(job, failure_of(job, models, code, read(job, errors)));
}

// Returns the end of an output of the child process; empty if the file does not exist.
std::string JobRunner::read(const Job& job, const char* name) const {
  std::ifstream file(jobs_.path(job, name), std::ios::ate | std::ios::binary);
  if (!file) return {};
  file.seekg(std::max<std::streamoff>(0, file.tellg() - kMostOutput));
  return {std::istreambuf_iterator<char>(file), {}};
}

void JobRunner::stop(const std::string& job, std::chrono::seconds grace) {
  for (Run* run : {&validation_, &training_})
    if (run->child && run->job == job) stop(*run, grace);
}

void JobRunner::stop(Run& run, std::chrono::seconds grace) {
  if (!run.child) return;
  if (!run.stopping) run.child->stop();  // a second signal would end it without a snapshot
  run.stopping = true;
  run.killed_at = steady_clock::now() + grace;
}

void JobRunner::stop_all(std::chrono::seconds grace) {
  stop(validation_, std::chrono::seconds(0));
  stop(training_, grace);
}

}  // namespace fovea::tuning
