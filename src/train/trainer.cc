#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "families/directory.h"
#include "generate/generate.h"
#include "kernels/isa.h"
#include "plan/machine.h"
#include "tensor/tape.h"
#include "train/evaluation.h"
#include "train/settings.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Pass Stepper::training_pass(const Batch& batch, int64_t step, int64_t n) const {
  Pass pass;
  pass.compute = compute_;
  pass.training = true;
  pass.dropout.seed = options_.seed;
  if (batch.units > 0) {
    pass.dropout.step = static_cast<uint64_t>(step);
    pass.dropout.units = batch.units;
    pass.dropout.first_unit = n * batch.units;
  } else {  // elements are not of equal numbers, so each pass counts its own
    pass.dropout.step = static_cast<uint64_t>(step * options_.accumulate + n);
  }
  return pass;
}

std::vector<Batch> Stepper::batches_of(const Examples& examples, int64_t step) const {
  std::vector<Batch> batches;
  for (int64_t n = 0; n < options_.accumulate; ++n)
    batches.push_back(examples.training(step * options_.accumulate + n));
  return batches;
}

// Several forward passes with the gradients of one large batch: each loss is divided by what all
// ask for.
double Stepper::accumulate(const std::vector<Batch>& batches, int64_t step) {
  double asked = 0;
  for (const Batch& batch : batches) asked += static_cast<double>(batch.asked);
  asked = std::max(asked, 1.0);
  PassGradients gradients;
  std::vector<double> losses;
  for (const Batch& batch : batches) {
    const int64_t n = std::ssize(losses);
    const Tensor loss = loss_of(model_, batch, training_pass(batch, step, n), asked,
                                static_cast<float>(options_.label_smoothing));
    losses.push_back(*loss.data_as<double>());
    if (batches.size() == 1)  // without sums kept apart
      backward(loss);
    else
      gradients.backward(loss, n);
  }
  gradients.finish();
  return tree_sum(losses);
}

Stepper::Outcome Stepper::operator()(const Examples& examples, int64_t step) {
  const std::vector<Batch> batches = batches_of(examples, step);
  Outcome outcome;
  for (const Batch& batch : batches) outcome.tokens += batch.tokens;
  outcome.learning_rate = learning_rate(options_, step);
  outcome.loss = accumulate(batches, step);
  outcome.gradient_norm = optimizer.gradient_norm();
  if (std::isfinite(outcome.loss) && std::isfinite(outcome.gradient_norm)) {
    optimizer.update(step + 1, outcome.learning_rate, outcome.gradient_norm);
  } else {
    outcome.bad_tensor = first_bad_tensor(batches, step);
    optimizer.forget_gradients();
  }
  return outcome;
}

// In the order of the computation: weights, then what the layers make of them, then the gradients.
std::string Stepper::first_bad_tensor(const std::vector<Batch>& batches, int64_t step) const {
  std::string first;
  const auto look = [&](const std::string& name, const Tensor& value) {
    if (!first.empty() || !value) return;
    if (const int64_t bad = count_nonfinite(value); bad > 0)
      first = fmt::format("{} ({} of {})", name, bad, value.size());
  };
  model_.each([&](const std::string& name, Parameter& p) { look(name, p.value); });
  const Probe probe{look, {}};
  for (size_t n = 0; n < batches.size() && first.empty(); ++n) {
    const NoGradient off;
    Pass pass = training_pass(batches[n], step, static_cast<int64_t>(n));
    pass.probe = &probe;
    look("logits", answers(model_, batches[n], pass).logits);
  }
  model_.each([&](const std::string& name, Parameter& p) {
    look("gradient of " + name, p.value.gradient());
  });
  return first.empty() ? "the loss" : first;
}

Trainer::Trainer(Job& job, SnapshotFolder& folder,
                 const std::function<bool(const TrainProgress&)>& progress)
    : job_(job),
      options_(job.options),
      folder_(folder),
      report_(progress),
      stepper_(job.model, job.options, job.compute),
      record_(job.options.out, job.plan.first_step) {
  progress_.steps = options_.steps;
  if (options_.average > 1) average_.emplace(job.model, options_.average);
  if (job_.snapshot) resume();
  job_.tokenizer->save(options_.out);
}

void Trainer::resume() {
  const Snapshot& snapshot = *job_.snapshot;
  for (auto& [name, tensor] : stepper_.optimizer.state()) {
    const Tensor stored = snapshot.tensors.tensor(name);
    std::copy_n(stored.data_as<float>(), tensor.size(), tensor.data_as<float>());
  }
  progress_.step = saved_step_ = snapshot.step;
  const nlohmann::json& state = snapshot.state;
  progress_.tokens = state.value("tokens", snapshot.step * job_.plan.tokens_per_step);
  if (state.contains("best_loss")) progress_.best_loss = state["best_loss"].get<double>();
  progress_.best_figures = state.value("best_figures", progress_.best_figures);
  stale_ = state.value("stale", int64_t{0});
  bad_in_row_ = state.value("bad_in_row", int64_t{0});
  progress_.bits_per_byte = state.value("bits_per_byte", 0.0);
  if (average_) average_->restore(snapshot);
  if (const std::string change = change_of_class(job_); !change.empty())
    record_.note(progress_.step, change);
}

TrainResult Trainer::run() {
  TrainResult result;
  const Clock::time_point start = Clock::now();
  double smooth = 0;  // seconds a step, averaged over about ten
  bool go_on = true;
  while (progress_.step < options_.steps && go_on && !result.stopped_early) {
    const Clock::time_point step_start = Clock::now();
    const Stepper::Outcome outcome = stepper_(*job_.examples, progress_.step);
    ++progress_.step;
    progress_.step_seconds = seconds_since(step_start);
    smooth = smooth == 0 ? progress_.step_seconds : 0.9 * smooth + 0.1 * progress_.step_seconds;
    progress_.loss = outcome.loss;
    progress_.gradient_norm = outcome.gradient_norm;
    progress_.learning_rate = outcome.learning_rate;
    progress_.tokens += outcome.tokens;
    progress_.epoch = static_cast<double>(progress_.step * options_.accumulate) /
                      job_.examples->passes_per_epoch();
    progress_.tokens_per_second = static_cast<double>(job_.plan.tokens_per_step) / smooth;
    progress_.seconds_left = smooth * static_cast<double>(options_.steps - progress_.step);
    progress_.peak_bytes = resident_peak();
    guard(outcome);
    record_.step(progress_);

    const bool last = progress_.step == options_.steps;
    if (due(options_.evaluate_every) || last) evaluate();
    result.stopped_early = options_.patience > 0 && stale_ >= options_.patience;
    if (due(options_.sample_every) || last) write_sample();
    if (due(options_.save_every) || last || result.stopped_early) save();
    go_on = !report_ || report_(progress_);
    progress_.sample.clear();
    progress_.saved.clear();
    progress_.warning.clear();
  }
  result.interrupted = !go_on && progress_.step < options_.steps;
  if (saved_step_ != progress_.step) {
    save();
    if (report_) report_(progress_);
  }
  result.step = progress_.step;
  result.loss = progress_.loss;
  result.best_loss = progress_.best_loss.value_or(0);
  result.bits_per_byte = progress_.bits_per_byte;
  result.figures = progress_.best_figures;
  result.seconds = seconds_since(start);
  result.peak_bytes = resident_peak();
  result.tokens_per_second = progress_.tokens_per_second;
  return result;
}

// A step whose numbers are none is skipped; several in a row end the run, with the last snapshot as
// it is.
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

// Before anything is written: what is on the disk stays good. A weight or moment that is not finite
// never becomes so again.
void Trainer::require_finite() const {
  for (const auto& [name, tensor] : stepper_.optimizer.state()) {
    const int64_t bad = count_nonfinite(tensor);
    if (bad == 0) continue;
    fail(ErrorKind::Failed,
         "train: step {}: {} of {} elements of {} are not finite; nothing is saved, the last good "
         "snapshot is {}",
         progress_.step, bad, tensor.size(), name, last_good());
  }
}

std::string Trainer::last_good() const {
  return saved_step_ >= 0 ? snapshot_path(options_.out, saved_step_) : "none";
}

Transformer& Trainer::judged() { return average_ ? average_->mean() : job_.model; }

void Trainer::evaluate() {
  const bool measures = job_.examples->validation_batches() > 0;
  const bool ranks = measures && options_.average_of == Averaged::best;
  if (average_) {
    average_->add(ranks ? merit(measure(job_.model)) : static_cast<double>(progress_.step));
  }
  if (!measures) return;
  const Measured found = measure(judged());
  progress_.validation_loss = found.loss;
  progress_.figures = found.figures;
  const Examples::Part& held_out = job_.examples->held_out;
  progress_.bits_per_byte = bits_per_byte(found.loss, held_out.asked, held_out.bytes);
  record_.evaluation(progress_);
  record_.draw();
  const bool better =
      !progress_.best_loss || merit(found) > merit({*progress_.best_loss, progress_.best_figures});
  if (std::isfinite(found.loss) && better) {
    progress_.best_loss = found.loss;
    progress_.best_figures = found.figures;
    stale_ = 0;
    write_model();
  } else {
    ++stale_;
  }
}

Trainer::Measured Trainer::measure(Transformer& model) const {
  const Score found = score(model, job_.compute, *job_.examples);
  return {found.loss, job_.task->figures(model, found, job_.compute)};
}

double Trainer::merit(const Measured& measured) const {
  if (!std::isfinite(measured.loss)) return -std::numeric_limits<double>::infinity();
  for (const auto& [name, value] : measured.figures)
    if (name == options_.best_by) return value;
  return -measured.loss;
}

void Trainer::write_sample() {
  const bool writes = !job_.spec.encoder && job_.spec.head.kind == HeadKind::language_model;
  if (options_.sample_tokens <= 0 || !writes) return;
  GenerateOptions options;
  options.max_tokens = options_.sample_tokens;
  options.sampling.seed = options_.seed + static_cast<uint64_t>(progress_.step);
  const Generator generator{job_.model, &*job_.tokenizer, {}, job_.compute};
  progress_.sample = generate(generator, prompt_ids(*job_.tokenizer, job_.model.spec, ""), options,
                              {}, available_memory() / 2)[0]
                         .text;
}

void Trainer::write_model() {
  require_finite();
  save_model_files(options_.out, judged(), job_.tokenizer->eos_id(), job_.origin);
}

void Trainer::save() {
  require_finite();
  // Until an evaluation has chosen the best, the newest is in the directory; before the snapshot,
  // so that the snapshot of the last step says that all is there.
  if (!progress_.best_loss) write_model();
  nlohmann::ordered_json state;
  state["step"] = progress_.step;
  if (std::isfinite(progress_.loss)) state["loss"] = progress_.loss;
  state["bits_per_byte"] = progress_.bits_per_byte;
  if (progress_.best_loss) state["best_loss"] = *progress_.best_loss;
  state["best_figures"] = progress_.best_figures;
  state["stale"] = stale_;
  state["bad_in_row"] = bad_in_row_;
  state["tokens"] = progress_.tokens;
  state["numeric_class"] = numeric_class(job_.compute);
  state["settings"] = settings(job_);
  std::map<std::string, Tensor> tensors = stepper_.optimizer.state();
  if (average_) {
    tensors.merge(average_->state());
    state["average_ranks"] = average_->ranks();
  }
  folder_.save(progress_.step, {std::move(tensors), state, {}});
  folder_.prune(static_cast<int>(options_.keep));
  record_.draw();
  saved_step_ = progress_.step;
  progress_.saved = snapshot_path(options_.out, progress_.step);
}

}  // namespace fovea
