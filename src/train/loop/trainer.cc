#include "loop/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/fields.h"
#include "base/machine.h"
#include "kernels/isa.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

using Clock = std::chrono::steady_clock;

// A step of a job of several processes has stalled if it takes as long as this many usual ones.
constexpr double kStalledSteps = 5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(Job& job, model::SnapshotFolder* folder,
                 const std::function<bool(const TrainProgress&)>& progress,
                 const std::function<void(Pause, double)>& pausing)
    : job_(job),
      options_(job.options),
      folder_(folder),
      report_(progress),
      pausing_(pausing),
      stepper_(job.model, *job.task, job.options, job.compute),
      pauses_(job, job.plan.tokens_per_second > 0
                       ? static_cast<double>(job.plan.tokens_per_step) / job.plan.tokens_per_second
                       : 0),
      evaluation_(job.task->evaluation()),
      divergence_(job.options.warmup) {
  progress_.steps = options_.steps;
  if (leads()) record_.emplace(job.options, job.plan.first_step);
  if (options_.average > 1) average_.emplace(job.model, options_.average);
  if (job_.snapshot) resume();
  if (leads()) job_.task->write_fixed_files(options_.out);
}

void Trainer::resume() {
  const model::Snapshot& snapshot = *job_.snapshot;
  stepper_.restore(snapshot);
  progress_.step = saved_step_ = snapshot.step;
  const nlohmann::json& state = snapshot.state;
  progress_.tokens = state.value("tokens", snapshot.step * job_.plan.tokens_per_step);
  if (state.contains("best_loss")) progress_.best_loss = state["best_loss"].get<double>();
  progress_.best_metrics = state.value("best_metrics", progress_.best_metrics);
  if (progress_.best_loss || !progress_.best_metrics.empty())
    best_ = Measured{.loss = progress_.best_loss, .metrics = progress_.best_metrics};
  start_metrics_ = state.value("start_metrics", start_metrics_);
  if (state.contains("start_loss")) start_loss_ = state["start_loss"].get<double>();
  best_step_ = state.value("best_step", best_step_);
  divergence_.restore(state.value("losses", nlohmann::json()));
  rewards_.restore(state.value("rewards", nlohmann::json()));
  stale_ = state.value("stale", int64_t{0});
  bad_in_row_ = state.value("bad_in_row", int64_t{0});
  progress_.bits_per_byte = state.value("bits_per_byte", 0.0);
  if (average_) average_->restore(snapshot);
  job_.task->restore(snapshot);
  if (const std::string change = change_of_class(job_); !change.empty())
    if (record_) record_->note(progress_.step, change);
}

TrainResult Trainer::run() {
  TrainResult result;
  start_ = Clock::now();
  if (record_) record_->begin(progress_.step);
  const int64_t tokens_before = progress_.tokens;
  bool go_on = false;
  try {
    go_on = take_steps(result);
  } catch (const RewardsStopped&) {
    clear_step();
  }
  result.interrupted = !go_on && progress_.step < options_.steps;
  if (saved_step_ != progress_.step) {
    pause(Pause::snapshot, [&] { save(); });
    if (report_) report_(progress_);
  }
  result.step = progress_.step;
  result.loss = progress_.loss;
  result.best_loss = progress_.best_loss.value_or(0);
  result.bits_per_byte = progress_.bits_per_byte;
  result.metrics = progress_.best_metrics;
  result.start_metrics = start_metrics_;
  result.kept_start = kept_start();
  result.seconds = seconds_since(start_);
  result.peak_bytes = resident_peak();
  if (stepping_ > 0)
    result.tokens_per_second = static_cast<double>(progress_.tokens - tokens_before) / stepping_;
  if (record_) record_->end(result, job_.plan);
  return result;
}

bool Trainer::take_steps(TrainResult& result) {
  double smooth = 0;  // seconds per step, averaged over about ten steps
  bool go_on = true;
  job_.task->begin(job_.model, progress_.step);
  if (progress_.step == 0 && evaluates_start(job_)) {
    pause(Pause::evaluation, [&] { evaluate_start(); });
    if (job_.task->traits().evaluates_start) take_sample();
  }
  while (progress_.step < options_.steps && go_on && !result.stopped_early) {
    const Clock::time_point step_start = Clock::now();
    does(Activity::computing);
    const Stepper::Outcome outcome = step();
    ++progress_.step;
    progress_.step_seconds = seconds_since(step_start);
    stepping_ += progress_.step_seconds;
    progress_.seconds = seconds_since(start_);
    smooth = smooth == 0 ? progress_.step_seconds : 0.9 * smooth + 0.1 * progress_.step_seconds;
    if (options_.ranks != nullptr)
      options_.ranks->allow(std::max(options_.sharing.stall_timeout, kStalledSteps * smooth));
    take(outcome, smooth);
    guard(outcome);
    if (record_) record_->step(progress_);
    watch();

    const bool last = progress_.step == options_.steps;
    if (due(options_.evaluate_every) || last) pause(Pause::evaluation, [&] { evaluate(); });
    result.stopped_early = options_.patience > 0 && stale_ >= options_.patience;
    if (due(options_.sample_every) || last) take_sample();
    if (due(options_.save_every) || last || result.stopped_early)
      pause(Pause::snapshot, [&] { save(); });
    set_time_left(smooth);
    go_on = goes_on();
    progress_.sample.clear();
    progress_.saved.clear();
    progress_.warning.clear();
  }
  return go_on;
}

// Whether what happens every `every` steps is due. If ranks take steps by themselves, it waits for
// the next step after which they have the same weights.
bool Trainer::due(int64_t every) const {
  if (every == 0 || !synchronised()) return false;
  return progress_.step / every > stepper_.last_synchronised(progress_.step - 1) / every;
}

// Removes what an unfinished step has left, so that the state can be saved.
void Trainer::clear_step() {
  clear_tape();
  stepper_.clear_gradients();
}

// Does what interrupts the steps, and measures its time.
void Trainer::pause(Pause kind, const std::function<void()>& work) {
  const bool idle = (kind == Pause::evaluation && !job_.task->evaluates()) ||
                    (kind == Pause::sample && !job_.task->writes_samples(job_.model));
  if (pausing_ && !idle) pausing_(kind, pauses_.seconds_of(kind));
  const Clock::time_point start = Clock::now();
  does(kind == Pause::snapshot ? Activity::writing : Activity::evaluating);
  if (pausing_ && kind == Pause::evaluation) {
    job_.task->watch_predictions([&](double fraction) {
      if (fraction > 0) pausing_(kind, seconds_since(start) * (1 / fraction - 1));
    });
  }
  work();
  job_.task->watch_predictions({});
  pauses_.measured(kind, seconds_since(start));
}

void Trainer::take_sample() {
  if (options_.sample_every == 0 || !leads()) return;
  pause(Pause::sample, [&] { progress_.sample = job_.task->sample(job_.model, progress_.step); });
  record_->sample(progress_);
  if (options_.from.empty() || progress_.step == 0) return;
  if (const std::string piece = repeated_piece(progress_.sample); !piece.empty())
    warn(
        fmt::format("step {}: the sample repeats \"{}\"; expected a smaller learning rate, or "
                    "fewer steps, if the initial model does not do so",
                    progress_.step, piece));
}

void Trainer::set_time_left(double step_seconds) {
  const auto steps = static_cast<double>(options_.steps - progress_.step);
  progress_.seconds_left = steps * step_seconds + pauses_.left_after(progress_.step);
}

// Takes a step. If a task fails, such as a program that computes rewards, the state is saved first.
Stepper::Outcome Trainer::step() try {
  return stepper_(progress_.step);
} catch (const Error& error) {
  if (error.kind() == ErrorKind::Failed && saved_step_ != progress_.step) {
    clear_step();
    save();
  }
  throw;
}

// Updates the progress; `seconds` is the time of a step, averaged over the last steps.
void Trainer::take(const Stepper::Outcome& outcome, double seconds) {
  progress_.loss = outcome.loss;
  progress_.gradient_norm = outcome.gradient_norm;
  progress_.learning_rate = outcome.learning_rate;
  progress_.step_metrics = outcome.metrics;
  progress_.tokens += outcome.tokens;
  progress_.epoch = static_cast<double>(progress_.step) / job_.task->steps_per_epoch();
  progress_.tokens_per_second = static_cast<double>(job_.plan.tokens_per_step) / seconds;
  progress_.peak_bytes = resident_peak();
}

// Warns of a step that was skipped because its loss or a gradient was not finite. Throws Failed
// after `bad_steps` such steps in a row; the last snapshot is kept.
void Trainer::guard(const Stepper::Outcome& outcome) {
  if (outcome.bad_tensor.empty()) {
    bad_in_row_ = 0;
    return;
  }
  ++bad_in_row_;
  const std::string what =
      fmt::format("step {}: loss {}, gradient norm {}; first bad tensor: {}", progress_.step,
                  outcome.loss, outcome.gradient_norm, outcome.bad_tensor);
  if (bad_in_row_ >= options_.bad_steps) {
    fail(ErrorKind::Failed, "train: {} ({} such steps in a row); the last good snapshot is {}",
         what, bad_in_row_, last_good());
  }
  progress_.warning = what + "; skipped";
}

void Trainer::warn(const std::string& text) {
  progress_.warning += (progress_.warning.empty() ? "" : "\nwarning: ") + text;
  if (record_) record_->note(progress_.step, text);
}

// Warns of losses that rise, and of rewards that jump. If the run diverges, saves its state and
// throws Failed, unless the options tell to keep going.
void Trainer::watch() {
  if (!synchronised()) return;  // each rank knows its own loss only
  if (const std::string text = rewards_.see(progress_.step_metrics); !text.empty())
    warn(fmt::format("step {}: {}; expected a smaller learning rate", progress_.step, text));
  if (!job_.task->traits().losses_fall) return;
  const DivergenceGuard::Verdict verdict = divergence_.see(progress_.step, progress_.loss);
  if (verdict == DivergenceGuard::Verdict::warns)
    warn(fmt::format("step {}: {}; expected a smaller learning rate", progress_.step,
                     divergence_.text()));
  if (verdict != DivergenceGuard::Verdict::stops || options_.keep_going) return;
  if (record_) record_->note(progress_.step, divergence_.text());
  pause(Pause::snapshot, [&] { save(); });
  fail_field(ErrorKind::Failed, "learning_rate",
             "{:g}: the run diverges: {}; stopped at step {}, saved in {}; expected a smaller "
             "rate, or `keep_going`",
             options_.learning_rate, divergence_.text(), progress_.step, last_good());
}

// Throws Failed if a weight or moment is not finite, before anything is written: the files on disk
// stay valid. Such an element never becomes finite again.
void Trainer::require_finite() const {
  for (const auto& [name, tensor] : stepper_.own_state()) {
    const int64_t bad = count_nonfinite(tensor);
    if (bad == 0) continue;
    fail(ErrorKind::Failed,
         "train: step {}: {} of {} elements of {} are not finite; nothing is saved, the last good "
         "snapshot is {}",
         progress_.step, bad, tensor.size(), name, last_good());
  }
}

std::string Trainer::last_good() const {
  return saved_step_ >= 0 ? model::snapshot_path(options_.out, saved_step_) : "none";
}

model::Transformer& Trainer::evaluated_weights() {
  return average_ ? average_->mean() : job_.model;
}

void Trainer::evaluate() {
  const bool evaluates = job_.task->evaluates();
  const bool ranks = evaluates && options_.average_of == Averaged::best;
  if (average_)
    average_->add(ranks ? merit(measure(job_.model)) : static_cast<double>(progress_.step));
  if (!evaluates) return;
  keep_if_best(evaluated_weights());
}

void Trainer::evaluate_start() {
  if (job_.task->traits().evaluates_start) {
    evaluate();
  } else {
    keep_if_best(job_.model);
  }
  start_metrics_ = progress_.metrics;
  start_loss_ = progress_.validation_loss;
}

// Evaluates a model, and writes it if it is the best one so far.
void Trainer::keep_if_best(model::Transformer& model) {
  Measured found = measure(model);
  progress_.validation_loss = found.loss;
  progress_.metrics = found.metrics;
  progress_.labels = found.labels;
  progress_.bits_per_byte = found.bits_per_byte;
  if (record_) {
    record_->evaluation(progress_);
    record_->weights(progress_.step, job_.model);
    record_->draw();
  }
  const double good = merit(found);
  if (!std::isfinite(good) || (best_ && good <= merit(*best_))) {
    ++stale_;
    return;
  }
  progress_.best_loss = found.loss;
  progress_.best_metrics = found.metrics;
  best_ = std::move(found);
  best_step_ = progress_.step;
  stale_ = 0;
  write_model(model);
}

// Returns the numbers before and after a run whose initial weights were better than all later ones;
// empty if they were not, or if it is unknown.
std::string Trainer::kept_start() const {
  if (best_step_ != 0 || progress_.step == 0) return "";
  for (const auto& [name, before] : start_metrics_)
    if (const auto after = infer::value_of(progress_.metrics, name);
        name == options_.best_by && after)
      return fmt::format("{} {:.4f} before, {:.4f} after", name, before, *after);
  if (!start_loss_ || !progress_.validation_loss) return "";
  return fmt::format("loss {:.4f} before, {:.4f} after", *start_loss_, *progress_.validation_loss);
}

// Tells the other processes of the job, of which one may wait for this one.
void Trainer::does(Activity activity) const {
  if (options_.ranks != nullptr) options_.ranks->does(activity, progress_.step);
}

// Reports the progress. Returns whether the run goes on, which the leader decides.
bool Trainer::goes_on() const {
  const bool go_on = !leads() || !report_ || report_(progress_);
  if (!synchronised()) return true;
  does(Activity::exchanging);
  return options_.ranks == nullptr ? go_on : of_leader(*options_.ranks, go_on).get<bool>();
}

// The ranks share the evaluation; the decisions that follow from the leader's numbers are those of
// every rank.
Trainer::Measured Trainer::measure(const model::Transformer& model) const {
  if (options_.ranks == nullptr) return metrics_of(model);
  Measured found = metrics_of(model);
  nlohmann::json told = {{"metrics", found.metrics}, {"bits_per_byte", found.bits_per_byte}};
  if (found.loss) told["loss"] = *found.loss;
  told = of_leader(*options_.ranks, told);
  if (leads()) return found;
  if (told.contains("loss")) found.loss = told["loss"].get<double>();
  found.metrics = told["metrics"].get<infer::MetricValues>();
  found.bits_per_byte = told["bits_per_byte"].get<double>();
  return found;
}

Trainer::Measured Trainer::metrics_of(const model::Transformer& model) const {
  const infer::Predictions found = job_.task->predict(model);
  const infer::MetricValues loss = infer::values_of(evaluation_.loss, found);
  return {.loss = infer::value_of(loss, "loss"),
          .metrics = infer::values_of(evaluation_.metrics, found),
          .bits_per_byte = infer::value_of(loss, "bits_per_byte").value_or(0),
          .labels = infer::label_report(found)};
}

double Trainer::merit(const Measured& measured) const {
  if (measured.loss && !std::isfinite(*measured.loss))
    return -std::numeric_limits<double>::infinity();
  for (const infer::Metric& metric : evaluation_.metrics) {
    const std::optional<double> value = infer::value_of(measured.metrics, metric.name);
    if (metric.name == options_.best_by && value)
      return metric.greater_is_better ? *value : -*value;
  }
  return -measured.loss.value_or(0);
}

void Trainer::write_model(model::Transformer& model) {
  require_finite();
  if (leads()) job_.task->write_model(options_.out, model);
}

void Trainer::save() {
  require_finite();
  // Before the first evaluation, the directory contains the newest weights. They are written before
  // the snapshot, so that the snapshot of the last step implies a complete directory.
  if (!best_) write_model(evaluated_weights());
  write_snapshot(stepper_.state());
  saved_step_ = progress_.step;
  progress_.saved = model::snapshot_path(options_.out, progress_.step);
}

// `tensors`: those of the stepper.
void Trainer::write_snapshot(std::map<std::string, Tensor> tensors) {
  if (!leads()) return;
  nlohmann::ordered_json state;
  state["step"] = progress_.step;
  if (std::isfinite(progress_.loss)) state["loss"] = progress_.loss;
  state["bits_per_byte"] = progress_.bits_per_byte;
  if (progress_.best_loss) state["best_loss"] = *progress_.best_loss;
  state["best_metrics"] = progress_.best_metrics;
  if (!start_metrics_.empty()) state["start_metrics"] = start_metrics_;
  if (start_loss_) state["start_loss"] = *start_loss_;
  state["best_step"] = best_step_;
  if (const std::string text = kept_start(); !text.empty()) state["kept_start"] = text;
  state["losses"] = divergence_.state();
  state["rewards"] = rewards_.state();
  state["stale"] = stale_;
  state["bad_in_row"] = bad_in_row_;
  state["tokens"] = progress_.tokens;
  state["numeric_class"] = numeric_class(job_.compute);
  state["settings"] = job_.settings;
  if (average_) {
    tensors.merge(average_->state());
    state["average_ranks"] = average_->ranks();
  }
  tensors.merge(job_.task->state());
  model::SnapshotContents contents{std::move(tensors), state, {}};
  const std::map<std::string, std::string> files = job_.task->snapshot_files(job_.model);
  for (const auto& [name, content] : files) contents.others.push_back({name, {content}});
  folder_->save(progress_.step, contents);
  folder_->prune(static_cast<int>(options_.keep));
  record_->draw();
}

}  // namespace fovea::train
