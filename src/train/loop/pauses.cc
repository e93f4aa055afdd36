#include "loop/pauses.h"

#include <algorithm>
#include <cmath>

#include "optim/schedule.h"

namespace fovea::train {
namespace {

// Usual speeds, for estimates before the first measurement.
constexpr double kMemoryBytesPerSecond = 8e9, kDiskBytesPerSecond = 4e8;
// Translating reads a token as an evaluation does, but in smaller batches.
constexpr double kTranslationFactor = 3;

// Returns the number of tokens that an evaluation reads.
double evaluated_tokens(const Job& job) {
  const TrainOptions& o = job.options;
  const auto held_out = static_cast<double>(job.plan.validation_tokens);
  const int64_t length = o.length > 0 ? o.length : job.plan.spec.context;
  const bool all = job.plan.validation_sequences > 0 || o.evaluate_windows == 0;
  const double read =
      all ? held_out : std::min(held_out, static_cast<double>(o.evaluate_windows * length));
  if (job.plan.objective != Objective::pairs || job.plan.validation_sequences == 0)
    return read * job.evaluated_part;
  const double translated =
      static_cast<double>(std::min(o.bleu_lines, job.plan.validation_sequences)) /
      static_cast<double>(job.plan.validation_sequences);
  return (read + kTranslationFactor * held_out * translated) * job.evaluated_part;
}

double evaluation_seconds(const Job& job, double step_seconds) {
  if (!job.task->evaluates() || job.plan.tokens_per_step == 0) return 0;
  // The backward pass takes twice the time of the forward pass.
  return step_seconds / 3 * evaluated_tokens(job) / static_cast<double>(job.plan.tokens_per_step);
}

// Each token of a sample reads all weights.
double sample_seconds(const Job& job) {
  if (job.options.sample_every == 0) return 0;
  const double bytes = static_cast<double>(job.plan.parameters) * sizeof(float);
  return static_cast<double>(job.options.sample_tokens) * bytes / kMemoryBytesPerSecond;
}

// A snapshot has the trained weights and the moments; the model is written too.
double snapshot_seconds(const Job& job) {
  const double weights = static_cast<double>(job.plan.trained_parameters) * sizeof(float);
  return (2 * weights + static_cast<double>(job.plan.optimizer_bytes)) / kDiskBytesPerSecond;
}

}  // namespace

PauseTimes::PauseTimes(const Job& job, double step_seconds)
    : seconds_{evaluation_seconds(job, step_seconds), sample_seconds(job), snapshot_seconds(job)},
      every_{job.options.evaluate_every, job.options.sample_every, job.options.save_every},
      steps_(job.options.steps),
      evaluates_start_(evaluates_start(job)) {}

namespace {

constexpr double kMostPart = 0.15;    // of the time of a run
constexpr double kUsualSpeed = 1e11;  // operations per second of a laptop
constexpr double kUnnoticed = 10;     // seconds of all evaluations of a run
constexpr int64_t kEvaluations = 8, kSamples = 4;

// Returns after how many steps something happens that happens `times` times in a run.
int64_t interval(int64_t steps, int64_t times) { return (steps + times - 1) / times; }

// Chooses from the time that is left for evaluations, of which one may be before the first step.
void choose_evaluations(Job& job, double left, double each) {
  TrainOptions& o = job.options;
  const bool fresh = o.from.empty();
  const int64_t most = fresh ? o.steps : std::min(kEvaluations, o.steps);
  const double affordable = each > 0 ? std::floor(left / each) - (fresh ? 0 : 1) : kEvaluations;
  const auto times = std::clamp<double>(affordable, 1, static_cast<double>(most));
  const int64_t every = interval(o.steps, static_cast<int64_t>(times));
  choose_intervals(o);
  const int64_t evaluations = o.steps / o.evaluate_every;
  const double usual = static_cast<double>(evaluations) * each;
  if (fresh && usual < kUnnoticed) return;
  o.evaluate_every = fresh ? std::max(o.evaluate_every, every) : every;
  if (!fresh && affordable < 1) job.evaluated_part = std::max(0.0, left / (2 * each));
}

}  // namespace

void choose_pauses(Job& job) {
  TrainOptions& o = job.options;
  const bool chooses = job.task->traits().losses_fall && o.evaluate_every < 0;
  if (chooses) {
    const double step = job.plan.flops_per_step / kUsualSpeed;
    const PauseTimes times(job, step);
    double left = kMostPart / (1 - kMostPart) * static_cast<double>(o.steps) * step -
                  times.seconds_of(Pause::snapshot);
    const double sample = times.seconds_of(Pause::sample);
    if (!o.from.empty() && o.sample_every < 0 && sample > 0) {
      const auto affordable = static_cast<int64_t>(left / 2 / sample);
      const int64_t samples = std::clamp<int64_t>(affordable, 0, kSamples);
      o.sample_every = samples > 0 ? interval(o.steps, std::min(samples, o.steps)) : 0;
      left -= static_cast<double>(samples) * sample;
    }
    choose_evaluations(job, left, times.seconds_of(Pause::evaluation));
  }
  // An evaluation of a longer run reads what those of the shorter one read, to be comparable.
  job.evaluated_part = number_of_snapshot(job, "evaluated_part", job.evaluated_part);
  if (const int64_t kept = setting_of_snapshot(job, "evaluate_every", -1); chooses && kept >= 0)
    o.evaluate_every = kept;
  choose_intervals(o);
}

double PauseTimes::left_after(int64_t step) const {
  if (step >= steps_) return 0;
  double left = step == 0 && evaluates_start_ ? seconds_of(Pause::evaluation) : 0;
  for (size_t i = 0; i < every_.size(); ++i) {
    const int64_t every = every_[i];
    const int64_t regular = every > 0 ? steps_ / every - step / every : 0;
    const bool at_end = every <= 0 || steps_ % every != 0;
    left += seconds_[i] * static_cast<double>(regular + (at_end ? 1 : 0));
  }
  return left;
}

}  // namespace fovea::train
