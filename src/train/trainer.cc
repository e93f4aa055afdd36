#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "families/directory.h"
#include "generate/generate.h"
#include "plan/machine.h"
#include "tensor/tape.h"
#include "train/evaluation.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Pass Stepper::training_pass(int64_t pass_number) const {
  Pass pass;
  pass.compute = compute_;
  pass.training = true;
  pass.dropout.seed = options_.seed;
  pass.dropout.step = static_cast<uint64_t>(pass_number);
  return pass;
}

// Several forward passes with the gradients of one large batch: each loss is divided by the tokens
// of all.
double Stepper::accumulate(const Batches& batches, int64_t step) {
  const int64_t B = options_.batch, T = model_.spec.context;
  const double tokens = static_cast<double>(B * T * options_.accumulate);
  double loss = 0;
  for (int64_t n = 0; n < options_.accumulate; ++n) {
    const int64_t pass_number = step * options_.accumulate + n;
    const Tensor ids = empty({B, T}, DType::i32), targets = empty({B, T}, DType::i32);
    batches.fill(pass_number, B, ids.data_as<int32_t>(), targets.data_as<int32_t>());
    const Tensor part = cross_entropy(model_.logits(model_.hidden(ids, training_pass(pass_number))),
                                      targets, tokens);
    loss += *part.data_as<float>();
    backward(part);
  }
  return loss;
}

Stepper::Outcome Stepper::operator()(const Batches& batches, int64_t step) {
  Outcome outcome;
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
std::string Stepper::first_bad_tensor(const Batches& batches, int64_t step) const {
  std::string first;
  const auto look = [&](const std::string& name, const Tensor& value) {
    if (!first.empty() || !value) return;
    if (const int64_t bad = count_nonfinite(value); bad > 0)
      first = fmt::format("{} ({} of {})", name, bad, value.size());
  };
  model_.each([&](const std::string& name, Parameter& p) { look(name, p.value); });
  const Probe probe{look, {}};
  for (int64_t n = 0; n < options_.accumulate && first.empty(); ++n) {
    const NoGradient off;
    const int64_t pass_number = step * options_.accumulate + n;
    const Tensor ids = empty({options_.batch, model_.spec.context}, DType::i32),
                 targets = empty_like(ids);
    batches.fill(pass_number, options_.batch, ids.data_as<int32_t>(), targets.data_as<int32_t>());
    Pass pass = training_pass(pass_number);
    pass.probe = &probe;
    look("logits", model_.logits(model_.hidden(ids, pass)));
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
      batches_(job.store->training(), job.context(), job.options.seed),
      stepper_(job.model, job.options, job.compute),
      record_(job.options.out, job.plan.first_step) {
  progress_.steps = options_.steps;
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
  progress_.tokens = snapshot.step * job_.plan.tokens_per_step;
  const nlohmann::json& state = snapshot.state;
  if (state.contains("best_loss")) progress_.best_loss = state["best_loss"].get<double>();
  stale_ = state.value("stale", int64_t{0});
  bad_in_row_ = state.value("bad_in_row", int64_t{0});
  progress_.bits_per_byte = state.value("bits_per_byte", 0.0);
}

TrainResult Trainer::run() {
  TrainResult result;
  const Clock::time_point start = Clock::now();
  double smooth = 0;  // seconds a step, averaged over about ten
  bool go_on = true;
  while (progress_.step < options_.steps && go_on && !result.stopped_early) {
    const Clock::time_point step_start = Clock::now();
    const Stepper::Outcome outcome = stepper_(batches_, progress_.step);
    ++progress_.step;
    progress_.step_seconds = seconds_since(step_start);
    smooth = smooth == 0 ? progress_.step_seconds : 0.9 * smooth + 0.1 * progress_.step_seconds;
    progress_.loss = outcome.loss;
    progress_.gradient_norm = outcome.gradient_norm;
    progress_.learning_rate = outcome.learning_rate;
    progress_.tokens += job_.plan.tokens_per_step;
    progress_.epoch =
        static_cast<double>(progress_.tokens) / static_cast<double>(job_.plan.training_tokens);
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
  result.seconds = seconds_since(start);
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

void Trainer::evaluate() {
  const TokenSpan& held_out = job_.store->validation();
  if (held_out.count <= job_.context()) return;
  const int64_t most = options_.evaluate_windows > 0 ? options_.evaluate_windows : held_out.count;
  const ValidationBatches windows(held_out, job_.context(), most);
  const double loss =
      mean_loss(job_.model, job_.compute, windows.windows(), job_.context(), options_.batch,
                [&](int64_t first, int64_t count, int32_t* ids, int32_t* targets) {
                  windows.fill(first, count, ids, targets);
                });
  progress_.validation_loss = loss;
  progress_.bits_per_byte = bits_per_byte(loss, held_out.count, held_out.bytes);
  record_.evaluation(progress_.step, loss, progress_.bits_per_byte);
  record_.draw();
  if (std::isfinite(loss) && (!progress_.best_loss || loss < *progress_.best_loss)) {
    progress_.best_loss = loss;
    stale_ = 0;
    write_model();
  } else {
    ++stale_;
  }
}

void Trainer::write_sample() {
  if (options_.sample_tokens <= 0) return;
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
  save_model_files(options_.out, job_.model, job_.tokenizer->eos_id());
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
  state["stale"] = stale_;
  state["bad_in_row"] = bad_in_row_;
  state["settings"] = settings(job_);
  folder_.save(progress_.step, {stepper_.optimizer.state(), state, {}});
  folder_.prune(static_cast<int>(options_.keep));
  record_.draw();
  saved_step_ = progress_.step;
  progress_.saved = snapshot_path(options_.out, progress_.step);
}

}  // namespace fovea
