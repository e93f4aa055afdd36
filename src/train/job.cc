#include "train/job.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/threads.h"
#include "families/directory.h"
#include "kernels/isa.h"
#include "plan/machine.h"
#include "tokenizer/formats/vocab_files.h"
#include "train/check_options.h"
#include "train/settings.h"

namespace fovea {
namespace {

// What was asked for, what the run began with, or what the CPU is best at.
DType compute_dtype(const Job& job) {
  const Precision asked = job.options.precision;
  if (asked != Precision::automatic) return asked == Precision::bf16 ? DType::bf16 : DType::f32;
  if (job.snapshot) {
    const nlohmann::json before = job.snapshot->state.value("settings", nlohmann::json::object());
    for (const DType dtype : {DType::f32, DType::bf16})
      if (before.value("precision", "") == name_of(dtype)) return dtype;
  }
  return native_bf16() ? DType::bf16 : DType::f32;
}

// The weights of a snapshot, copied into the model; the moments are the optimiser's.
void restore_weights(Transformer& model, const Snapshot& snapshot) {
  model.each([&](const std::string& name, Parameter& p) {
    const Tensor stored = snapshot.tensors.tensor("weight." + name);
    check(stored.shape() == p.shape, "{}: weight.{} is {}; expected {}", snapshot.path, name,
          describe(stored.shape()), describe(p.shape));
    p.value = copy(stored);
  });
}

// What the checkpoint lacks begins as in a new model.
void initialise_missing(Transformer& model, uint64_t seed) {
  Transformer fresh(model.spec);
  initialise(fresh, seed);
  std::map<std::string, Tensor> values;
  fresh.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  model.each([&](const std::string& name, Parameter& p) {
    if (!p.value) p.value = values.at(name);
  });
}

void choose_model(Job& job, const Say& say) {
  const TrainOptions& o = job.options;
  if (job.snapshot) {
    job.model = Transformer(job.spec);
    restore_weights(job.model, *job.snapshot);
    job.plan.from = job.snapshot->path;
    job.plan.first_step = job.snapshot->step;
  } else if (!o.from.empty()) {
    ModelFiles files = job.new_head ? open_with_head(o.from, Weights::owned, job.spec.head)
                                    : open_model_files(o.from, Weights::owned);
    for (std::string& warning : files.warnings) say(std::move(warning));
    job.model = std::move(files.model);
    if (!files.missing.empty()) initialise_missing(job.model, o.seed);
    job.model.spec = job.spec;  // its context may be the shorter one asked for
    job.plan.from = o.from;
  } else {
    job.model = Transformer(job.spec);
    initialise(job.model, o.seed);
    job.plan.from = "random weights";
  }
}

// The process beside what the training allocates, as it is now: what its threads and the reading
// and writing of files need, and the second copy of the weights with which steps are timed or in
// which they are written.
uint64_t process_bytes(const TrainPlan& plan) {
  constexpr uint64_t kProgram = 32 << 20;  // code, libraries and their data: measured
  constexpr uint64_t kThread = 1 << 20;    // stack and scratch
  return kProgram + static_cast<uint64_t>(plan.threads) * kThread + private_memory() +
         static_cast<uint64_t>(plan.parameters) * sizeof(float);
}

// Before the data is read, and again with what it takes.
void check_memory(Job& job) {
  TrainPlan& plan = job.plan;
  const uint64_t limit = job.options.memory_limit;
  plan.process_bytes = process_bytes(plan);
  plan.total_bytes =
      plan.weight_bytes + plan.optimizer_bytes + plan.activation_bytes + plan.process_bytes;
  // What is held already is part of the plan.
  plan.available_bytes = limit > 0 ? limit : available_memory() + resident_memory();
  if (plan.total_bytes <= plan.available_bytes) return;
  fail(ErrorKind::OutOfMemory,
       "memory: training needs about {} MB (weights and gradients {}, optimiser {}, activations "
       "{}, the process itself {}), {} are there; expected less: a smaller --batch with "
       "--accumulate, a shorter --context, or a smaller model",
       plan.total_bytes >> 20, plan.weight_bytes >> 20, plan.optimizer_bytes >> 20,
       plan.activation_bytes >> 20, plan.process_bytes >> 20, plan.available_bytes >> 20);
}

void plan_cost(Job& job) {
  TrainPlan& plan = job.plan;
  const TrainOptions& o = job.options;
  const Cost cost = job.task->cost(job.spec, job.compute);
  plan.parameters = cost.parameters;
  plan.weight_bytes = cost.weight_bytes;
  if (o.average > 1)  // those of each evaluation, and their mean
    plan.weight_bytes += static_cast<uint64_t>(cost.parameters * (o.average + 1)) * sizeof(float);
  plan.optimizer_bytes = cost.optimizer_bytes;
  plan.activation_bytes = cost.activation_bytes;
  plan.flops_per_step = cost.flops_per_step;
  plan.precision = name_of(job.compute);
  plan.isa = active_isa();
  plan.threads = thread_count();
  check_memory(job);
}

void plan_data(Job& job) {
  TrainPlan& plan = job.plan;
  const TrainOptions& o = job.options;
  const Examples& examples = *job.examples;
  plan.spec = job.spec;
  plan.objective = name_of(objective_of(o, job.spec));
  plan.vocabulary = job.tokenizer->size();
  plan.training_tokens = examples.learnt.tokens;
  plan.validation_tokens = examples.held_out.tokens;
  plan.training_sequences = examples.learnt.sequences;
  plan.validation_sequences = examples.held_out.sequences;
  const double passes = static_cast<double>(o.accumulate), epoch = examples.passes_per_epoch();
  plan.tokens_per_step = std::llround(passes * static_cast<double>(examples.learnt.tokens) / epoch);
  plan.epochs = static_cast<double>(o.steps) * passes / epoch;
}

// The Spec of the checkpoint to start from, which may be told to read less at a time.
Spec spec_to_start_from(const Spec& given, const ModelFiles& files) {
  Spec spec = files.model.spec;
  if (given.context > 0 && given.context < spec.context && !spec.encoder &&
      spec.decoder->position.kind == PositionKind::none)
    spec.context = given.context;
  return spec;
}

std::string choose_best_by(const Job& job) {
  std::vector<std::string> names = job.task->figure_names();
  const auto measured = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::string& asked = job.options.best_by;
  if (asked == "automatic") return measured("bleu") ? "bleu" : "loss";
  names.emplace_back("loss");
  check(measured(asked), "--best-by: {} is not measured in this run; expected {}", asked,
        fmt::join(names, " or "));
  return asked;
}

TranslationTokenizers choose_tokenizers(const Job& job, const Spec& spec) {
  const TrainOptions& o = job.options;
  if (job.snapshot) return TranslationTokenizers::open(o.out);
  if (o.from.empty()) {
    if (is_folder(o.tokenizer)) return TranslationTokenizers::open(o.tokenizer);
    const Tokenizer made = job.task->make_tokenizer(spec);
    return {made, made};
  }
  // A checkpoint without one is given another's.
  const bool bare = !has_vocabulary(o.from) && is_folder(o.tokenizer);
  return TranslationTokenizers::open(bare ? o.tokenizer : o.from);
}

}  // namespace

std::string change_of_class(const Job& job) {
  if (!job.snapshot) return "";
  const std::string now = numeric_class(job.compute),
                    before = job.snapshot->state.value("numeric_class", now);
  if (before == now) return "";
  return fmt::format(
      "the run goes on in {} of CPU class {}, before it was of class {}: from here its bits differ "
      "from those of an uninterrupted run",
      name_of(job.compute), now, before);
}

Job prepare(const Spec& given, const TrainOptions& options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading) {
  check_options(options);
  Job job;
  job.options = options;
  if (is_folder(options.out)) job.snapshot = load_latest_snapshot(options.out, say);
  job.compute = compute_dtype(job);
  job.spec = given;
  if (!options.from.empty()) {
    ModelFiles files = open_model_files(options.from, Weights::mapped);
    job.spec = spec_to_start_from(given, files);
    job.origin = std::move(files.origin);
    job.origin.save_all_as(DType::f32);
  }
  job.task = open_task(options, job.spec);
  job.task->watch(reading);
  job.options.best_by = choose_best_by(job);
  const TranslationTokenizers tokenizers = choose_tokenizers(job, job.spec);
  job.tokenizer = tokenizers.source;
  job.target_tokenizer = tokenizers.target;
  const Spec before = job.spec;
  job.task->shape(job.spec, *job.tokenizer, job.origin, say);
  job.new_head = write_spec(before) != write_spec(job.spec);
  if (!options.from.empty() && job.tokenizer->size() > job.spec.vocabulary) {
    fail(ErrorKind::BadFile,
         "{}: its tokenizer has {} tokens, its weights {}; expected no more tokens than weights",
         options.from, job.tokenizer->size(), job.spec.vocabulary);
  }
  job.spec.vocabulary = std::max<int64_t>(job.spec.vocabulary, job.tokenizer->size());
  job.spec = validated(job.spec);
  if (options.from.empty()) job.origin = job.task->origin(job.spec, *job.tokenizer);
  if (const auto labels = job.task->labels(); !labels.empty()) job.origin.labels = labels;
  plan_cost(job);
  job.examples = job.task->examples(job.spec, {*job.tokenizer, *job.target_tokenizer}, job.origin,
                                    read_only, say);
  plan_data(job);
  check_memory(job);
  if (job.snapshot) check_settings(job);
  if (const std::string change = change_of_class(job); !change.empty()) say(change);
  choose_model(job, say);
  return job;
}

}  // namespace fovea
