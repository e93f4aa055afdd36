#include "base/error.h"
#include "base/files.h"
#include "plan/machine.h"
#include "train/trainer.h"

namespace fovea {
namespace {

// From a few steps of the real thing where they are quick, else from the rate of this machine's
// matrix products: a step was measured to reach about this part of it.
constexpr double kUsualShare = 0.7;
constexpr double kQuickSeconds = 0.5;

double estimated_seconds(Job& job) {
  const double steps = static_cast<double>(job.options.steps - job.plan.first_step);
  const double step_seconds =
      job.plan.flops_per_step / (kUsualShare * measured_flops(job.compute, 0.02));
  if (step_seconds > kQuickSeconds) return steps * step_seconds;
  TrainOptions options = job.options;
  Transformer scratch(job.spec);
  initialise(scratch, 0);
  Stepper step(scratch, options, job.compute);
  const Batches batches(job.store->training(), job.context(), options.seed);
  step(batches, 0);  // the first one allocates
  const auto start = std::chrono::steady_clock::now();
  step(batches, 1);
  step(batches, 2);
  return steps * std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
         2;
}

}  // namespace

TrainPlan plan_training(const Spec& spec, const TrainOptions& options) {
  std::vector<std::string> notes;
  Job job =
      prepare(spec, options, true, [&](std::string note) { notes.push_back(std::move(note)); });
  job.plan.seconds = estimated_seconds(job);
  job.plan.notes = notes;
  return job.plan;
}

TrainResult train(const Spec& spec, const TrainOptions& options,
                  const std::function<bool(const TrainPlan&)>& planned,
                  const std::function<bool(const TrainProgress&)>& progress) {
  std::vector<std::string> notes;
  const auto note = [&](std::string text) { notes.push_back(std::move(text)); };
  check(!options.out.empty(), "--out: no directory; expected one for the model");
  if (!is_folder(options.out))
    prepare(spec, options, true, note);  // nothing is made on disk for what will be refused
  make_directories(options.out);
  SnapshotFolder folder(options.out);
  Job job = prepare(spec, options, false, note);
  job.plan.seconds = estimated_seconds(job);
  job.plan.notes = notes;
  if (planned && !planned(job.plan)) return {.step = job.plan.first_step};
  return Trainer(job, folder, progress).run();
}

}  // namespace fovea
