#include "train/pauses.h"

#include <algorithm>

namespace fovea {
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
  if (job.plan.objective != "pairs" || job.plan.validation_sequences == 0) return read;
  const double translated =
      static_cast<double>(std::min(o.bleu_lines, job.plan.validation_sequences)) /
      static_cast<double>(job.plan.validation_sequences);
  return read + kTranslationFactor * held_out * translated;
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
      steps_(job.options.steps) {}

double PauseTimes::left_after(int64_t step) const {
  if (step >= steps_) return 0;
  double left = 0;
  for (size_t i = 0; i < every_.size(); ++i) {
    const int64_t every = every_[i];
    const int64_t regular = every > 0 ? steps_ / every - step / every : 0;
    const bool at_end = every <= 0 || steps_ % every != 0;
    left += seconds_[i] * static_cast<double>(regular + (at_end ? 1 : 0));
  }
  return left;
}

}  // namespace fovea
