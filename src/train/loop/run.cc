#include "loop/run.h"

#include <chrono>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "loop/leader.h"
#include "loop/pauses.h"
#include "loop/trainer.h"
#include "plan/speed.h"

namespace fovea::train {
namespace {

// The time of a step is estimated from the measured speed of matrix products; training reaches
// about the fraction kUsualShare of this speed. If the estimate is at most kQuickSeconds, steps are
// measured instead: kMostMeasured, or fewer that take kMeasuredSeconds.
constexpr double kUsualShare = 0.7;
constexpr double kQuickSeconds = 0.5, kMeasuredSeconds = 1;
constexpr int64_t kUnmeasured = 2;  // these allocate memory
constexpr int64_t kMostMeasured = 12;

// Returns the expected time of a step.
double seconds_of_step(Job& job) {
  const double step_seconds =
      job.plan.flops_per_step / (kUsualShare * measured_flops(job.compute, 0.02));
  if (job.options.ranks != nullptr) return step_seconds / job.options.ranks->size();
  // Measuring takes a copy of all weights, which a frozen base may be too large for.
  if (step_seconds > kQuickSeconds || job.options.lora.rank > 0 ||
      !job.task->traits().measures_steps)
    return step_seconds;
  model::Transformer scratch(job.model.spec);
  model::initialise(scratch, 0);
  choose_trained(job, scratch);
  move_to(default_device(), scratch);
  Stepper step(scratch, *job.task, job.options, job.compute);
  // Steps of varying length are taken from the whole run.
  const auto step_number = [&](int64_t i) {
    return i * job.options.steps / (kUnmeasured + kMostMeasured);
  };
  for (int64_t i = 0; i < kUnmeasured; ++i) step(step_number(i));
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int64_t measured = 0;
  while (measured < kMostMeasured && seconds < kMeasuredSeconds) {
    step(step_number(kUnmeasured + measured++));
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return seconds / static_cast<double>(measured);
}

void plan_time(Job& job) {
  TrainPlan& plan = job.plan;
  const double step = seconds_of_step(job);
  plan.pause_seconds = PauseTimes(job, step).left_after(plan.first_step);
  plan.seconds =
      static_cast<double>(job.options.steps - plan.first_step) * step + plan.pause_seconds;
  plan.tokens_per_second = static_cast<double>(plan.tokens_per_step) / step;
}

// Removes the new folder of a run, and the token cache in it, if the run does not start: refused
// input leaves no files. Preparing a run creates them only if a large text needs the token cache.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path), existing_(path) {
    while (!is_folder(existing_) && existing_ != "." && existing_ != "/")
      existing_ = parent_of(existing_);
  }
  ~NewFolder() {
    if (existing_ == path_) return;
    system_calls().unlink((path_ + "/tokens.bin").c_str());
    for (std::string made = path_; made != existing_; made = parent_of(made))
      system_calls().rmdir(made.c_str());  // fails if the folder is not empty
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  void keep() { existing_ = path_; }

 private:
  std::string path_, existing_;  // existing_: the existing part of the path
};

// Returns the result of a finished run from its last snapshot; nothing if it has not finished.
std::optional<TrainResult> result_of_finished(const Job& job) {
  if (!job.snapshot) return std::nullopt;
  const nlohmann::json& state = job.snapshot->state;
  TrainResult result;
  result.step = job.snapshot->step;
  result.stopped_early = ended_early(job);
  if (result.step < job.options.steps && !result.stopped_early) return std::nullopt;
  result.loss = state.value("loss", 0.0);
  result.best_loss = state.value("best_loss", 0.0);
  result.bits_per_byte = state.value("bits_per_byte", 0.0);
  result.metrics = state.value("best_metrics", result.metrics);
  result.start_metrics = state.value("start_metrics", result.start_metrics);
  result.kept_start = state.value("kept_start", "");
  return result;
}

}  // namespace

TrainPlan plan_run(const Preparation& prepare) {
  const FloatMode mode;
  std::vector<std::string> notes;
  Job job = prepare([&](std::string note) { notes.push_back(std::move(note)); });
  plan_time(job);
  job.plan.notes = notes;
  return job.plan;
}

namespace {

// The run of a rank that does not lead. The leader has prepared the job before, so that its files
// can be read.
TrainResult help(const Preparation& prepare, Communicator& ranks) {
  if (!of_leader(ranks, {}).get<bool>()) return {};
  Job job = prepare([](const std::string&) {});
  agree_on_job(ranks, job);
  return Trainer(job, nullptr, {}, {}).run();
}

}  // namespace

TrainResult run(const std::string& out, const Preparation& prepare,
                const std::function<bool(const TrainPlan&)>& planned,
                const std::function<bool(const TrainProgress&)>& progress,
                const std::function<void(Pause, double)>& pausing, Communicator* ranks) {
  const FloatMode mode;
  if (ranks != nullptr) require_cpu("training on several ranks");
  if (!leads(ranks)) return help(prepare, *ranks);
  std::vector<std::string> notes;
  check_field(!out.empty(), "out", "no directory; expected one for the model");
  std::optional<model::SnapshotFolder> folder;  // locked before its snapshots are read
  if (is_folder(out)) folder.emplace(out);
  NewFolder created(out);
  Job job = prepare([&](std::string note) { notes.push_back(std::move(note)); });
  job.plan.notes = notes;
  const std::optional<TrainResult> finished = result_of_finished(job);
  if (!finished) plan_time(job);
  const bool goes = !planned || planned(job.plan);
  if (!goes || finished) {
    if (ranks != nullptr) of_leader(*ranks, false);
    return goes ? *finished : TrainResult{.step = job.plan.first_step};
  }
  created.keep();
  if (!folder) {
    folder.emplace(out);
    if (!model::find_snapshots(out).empty()) {
      fail_field(ErrorKind::Failed, "out",
                 "{}: another run was started there; expected a new directory", out);
    }
  }
  Trainer trainer(job, &*folder, progress, pausing);
  if (ranks != nullptr) {
    of_leader(*ranks, true);
    agree_on_job(*ranks, job);
  }
  return trainer.run();
}

}  // namespace fovea::train
