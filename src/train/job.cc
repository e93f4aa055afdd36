#include "train/job.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/threads.h"
#include "data/train_tokenizer.h"
#include "families/directory.h"
#include "plan/estimate.h"
#include "plan/machine.h"

namespace fovea {
namespace {

void check_range(const char* option, double value, double least, double most) {
  check(value >= least && value <= most, "{}: {}; expected {} to {}", option, value, least, most);
}

void check_options(const TrainOptions& o) {
  check(!o.data.empty(), "DATA: no file; expected text files, folders or JSON lines");
  check_range("--steps", static_cast<double>(o.steps), 1, 1e9);
  check_range("--batch", static_cast<double>(o.batch), 1, 65536);
  check_range("--accumulate", static_cast<double>(o.accumulate), 1, 65536);
  check_range("--validation", o.validation, 0, 0.9);
  check_range("--learning-rate", o.learning_rate, 0, 1000);
  check_range("--final-rate", o.final_rate, 0, 1);
  check_range("--warmup", static_cast<double>(o.warmup), 0, 1e9);
  check_range("--decay-fraction", o.decay_fraction, 0, 1);
  check_range("--beta1", o.beta1, 0, 0.99999);
  check_range("--beta2", o.beta2, 0, 0.99999);
  check_range("--epsilon", o.epsilon, 1e-15, 1);
  check_range("--weight-decay", o.weight_decay, 0, 10);
  check_range("--clip", o.clip, 0, 1e6);
  check_range("--keep", static_cast<double>(o.keep), 1, 1e6);
  check_range("--bad-steps", static_cast<double>(o.bad_steps), 1, 1e6);
  if (!o.out.empty() && !is_folder(o.out)) {
    std::string parent = o.out;  // the first part of the path that is there
    while (!is_folder(parent) && parent != "." && parent != "/") {
      if (is_file(parent)) {
        fail(ErrorKind::InvalidArgument,
             "--out: {}: {} is a file; expected a directory, or a name for a new one", o.out,
             parent);
      }
      parent = parent_of(parent);
    }
  }
}

DType compute_dtype(Precision precision) {
  if (precision == Precision::automatic) return native_bf16() ? DType::bf16 : DType::f32;
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
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

// The fields whose values differ, each as "spec.width was 16 and is 32".
void compare(const nlohmann::json& before, const nlohmann::json& now, const std::string& name,
             std::vector<std::string>& changed) {
  if (before == now) return;
  if (!now.is_object() || !before.is_object()) {
    changed.push_back(fmt::format("{} was {} and is {}", name,
                                  before.is_null() ? "absent" : brief(before), brief(now)));
    return;
  }
  for (const auto& [key, value] : now.items())
    compare(before.value(key, nlohmann::json()), value, name.empty() ? key : name + "." + key,
            changed);
}

// Where a run would go wrong without noticing: its snapshot was made with other numbers.
void check_settings(const Job& job) {
  std::vector<std::string> changed;
  compare(job.snapshot->state.value("settings", nlohmann::json::object()), settings(job), "",
          changed);
  if (!changed.empty() && !job.options.allow_change) {
    fail(ErrorKind::InvalidArgument,
         "--out: {} holds a run with other settings ({}); expected the same, another directory, or "
         "--allow-change",
         job.options.out, fmt::join(changed, "; "));
  }
}

void choose_model(Job& job, const std::function<void(std::string)>& say) {
  const TrainOptions& o = job.options;
  if (job.snapshot) {
    job.model = Transformer(job.spec);
    restore_weights(job.model, *job.snapshot);
    job.plan.from = job.snapshot->path;
    job.plan.first_step = job.snapshot->step;
  } else if (!o.from.empty()) {
    ModelFiles files = open_model_files(o.from, Weights::owned);
    for (std::string& warning : files.warnings) say(std::move(warning));
    job.model = std::move(files.model);
    job.model.spec = job.spec;  // its context may be the shorter one asked for
    job.plan.from = o.from;
  } else {
    job.model = Transformer(job.spec);
    initialise(job.model, o.seed);
    job.plan.from = "random weights";
  }
}

void plan_cost(Job& job) {
  TrainPlan& plan = job.plan;
  const TrainOptions& o = job.options;
  const Cost cost = training_cost(job.spec, o.batch, job.context(), o.accumulate, job.compute);
  plan.parameters = cost.parameters;
  plan.weight_bytes = cost.weight_bytes;
  plan.optimizer_bytes = cost.optimizer_bytes;
  plan.activation_bytes = cost.activation_bytes;
  plan.total_bytes = cost.weight_bytes + cost.optimizer_bytes + cost.activation_bytes;
  plan.available_bytes = o.memory_limit > 0 ? o.memory_limit : available_memory();
  plan.flops_per_step = cost.flops_per_step;
  plan.tokens_per_step = o.batch * job.context() * o.accumulate;
  plan.precision = name_of(job.compute);
  plan.isa = active_isa();
  plan.threads = thread_count();
  if (plan.total_bytes > plan.available_bytes) {
    fail(ErrorKind::OutOfMemory,
         "memory: training needs about {} MB (weights and gradients {}, optimiser {}, activations "
         "{}), {} are free; "
         "expected less: a smaller --batch with --accumulate, a shorter --context, or a smaller "
         "model",
         plan.total_bytes >> 20, plan.weight_bytes >> 20, plan.optimizer_bytes >> 20,
         plan.activation_bytes >> 20, plan.available_bytes >> 20);
  }
}

}  // namespace

nlohmann::ordered_json settings(const Job& job) {
  const TrainOptions& o = job.options;
  nlohmann::ordered_json s;
  s["spec"] = nlohmann::ordered_json::parse(write_spec(job.spec));
  s["data"] = fmt::format("{:016x}", job.store->corpus_hash());
  s["tokenizer"] = fmt::format("{:016x}", job.tokenizer->hash());
  s["precision"] = name_of(job.compute);
  s["from"] = o.from;
  s["steps"] = o.steps;
  s["batch"] = o.batch;
  s["accumulate"] = o.accumulate;
  s["validation"] = o.validation;
  s["learning_rate"] = o.learning_rate;
  s["final_rate"] = o.final_rate;
  s["warmup"] = o.warmup;
  s["schedule"] = static_cast<int>(o.schedule);
  s["decay_fraction"] = o.decay_fraction;
  s["beta1"] = o.beta1;
  s["beta2"] = o.beta2;
  s["epsilon"] = o.epsilon;
  s["weight_decay"] = o.weight_decay;
  s["clip"] = o.clip;
  s["seed"] = o.seed;
  return s;
}

Job prepare(const Spec& spec, const TrainOptions& options, bool read_only,
            const std::function<void(std::string)>& say) {
  check_options(options);
  Job job;
  job.options = options;
  job.compute = compute_dtype(options.precision);
  if (is_folder(options.out)) job.snapshot = load_latest_snapshot(options.out, say);
  job.corpus = std::make_unique<Corpus>(
      std::vector<std::filesystem::path>(options.data.begin(), options.data.end()));

  job.spec = spec;
  if (job.snapshot)
    job.tokenizer = Tokenizer::open(options.out);
  else if (!options.from.empty())
    job.tokenizer = Tokenizer::open(options.from);
  else
    job.tokenizer =
        make_tokenizer(*job.corpus, options.tokenizer, options.max_vocabulary, spec.context);
  if (!options.from.empty()) {
    const Spec fresh = open_model_files(options.from, Weights::mapped).model.spec;
    job.spec = fresh;
    if (spec.context > 0 && spec.context < fresh.context &&
        fresh.decoder->position.kind == PositionKind::none)
      job.spec.context = spec.context;
    if (job.tokenizer->size() > fresh.vocabulary) {
      fail(ErrorKind::BadFile,
           "{}: its tokenizer has {} tokens, its weights {}; expected no more tokens than weights",
           options.from, job.tokenizer->size(), fresh.vocabulary);
    }
  }
  job.spec.vocabulary = std::max<int64_t>(job.spec.vocabulary, job.tokenizer->size());
  job.spec = validated(job.spec);
  check(job.spec.decoder && !job.spec.encoder && job.spec.head.kind == HeadKind::language_model,
        "spec: training needs a decoder alone with a language model's head; expected such a model");
  plan_cost(job);

  job.store = std::make_unique<TokenStore>(
      *job.corpus, *job.tokenizer,
      TokenStoreOptions{
          .validation = options.validation,
          .cache = read_only ? std::filesystem::path() : std::filesystem::path(options.out),
          .in_memory_bytes = static_cast<int64_t>(options.token_cache)});
  TrainPlan& plan = job.plan;
  plan.spec = job.spec;
  plan.vocabulary = job.tokenizer->size();
  plan.training_tokens = job.store->training().count;
  plan.validation_tokens = job.store->validation().count;
  plan.epochs = static_cast<double>(options.steps * plan.tokens_per_step) /
                static_cast<double>(std::max<int64_t>(1, plan.training_tokens));
  check(plan.training_tokens > job.context(),
        "{}: too short: {} tokens to learn from; expected at least {}, one more than --context",
        fmt::join(options.data, ", "), plan.training_tokens, job.context() + 1);
  if (job.snapshot) check_settings(job);
  choose_model(job, say);
  return job;
}

}  // namespace fovea
