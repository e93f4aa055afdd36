#include "loop/job.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/threads.h"
#include "kernels/isa.h"
#include "loop/adapters.h"
#include "loop/freeze.h"
#include "parallel/communicator.h"

namespace fovea::train {
namespace {

// Blocks of changing sizes leave gaps in the memory between them: measured with pairs of texts.
constexpr double kGaps = 1.2;

DType compute_dtype(const Job& job) {
  const Precision precision = job.options.precision;
  if (precision != Precision::automatic)
    return precision == Precision::bf16 ? DType::bf16 : DType::f32;
  if (job.snapshot) {
    const nlohmann::json before = job.snapshot->state.value("settings", nlohmann::json::object());
    for (const DType dtype : {DType::f32, DType::bf16})
      if (before.value("precision", "") == name_of(dtype)) return dtype;
  }
  return native_bf16() ? DType::bf16 : DType::f32;
}

// Copies the snapshot's weights into the trainable parameters. The trainer restores the moments.
void restore_weights(model::Transformer& model, const model::Snapshot& snapshot) {
  model.each([&](const std::string& name, model::Parameter& p) {
    if (!p.trainable) return;
    const Tensor stored = snapshot.tensors.tensor("weight." + name);
    check(stored.shape() == p.shape, "{}: weight.{} is {}; expected {}", snapshot.path, name,
          describe(stored.shape()), describe(p.shape));
    p.value = copy(stored);
  });
}

// Returns the memory of the process besides the allocations of training: code, threads, the memory
// that is used now, and a second copy of the trained weights for evaluating and writing files, as
// far as it is larger than the activations, which are freed before. The frozen weights of adapters
// are open, but count as weights.
uint64_t process_bytes(const Job& job) {
  const TrainPlan& plan = job.plan;
  const uint64_t open = job.options.lora.rank > 0 ? tensor_memory().live : 0;
  release_cached_memory();
  const uint64_t now = private_memory(), planned = std::min(now, std::min(job.base_bytes, open));
  constexpr uint64_t kProgram = 32 << 20;  // code, libraries and their data: measured
  constexpr uint64_t kThread = 1 << 20;    // stack and scratch memory
  const uint64_t copy = static_cast<uint64_t>(plan.trained_parameters) * sizeof(float);
  return kProgram + static_cast<uint64_t>(plan.threads) * kThread + now - planned + copy -
         std::min(copy, plan.activation_bytes);
}

// Adds the fields whose values differ to `changed`, each as "spec.width was 16 and is 32". Ignores
// a field of the top level that `before` lacks: an older version of fovea made the snapshot.
void compare(const nlohmann::json& before, const nlohmann::json& now, const std::string& name,
             std::vector<std::string>& changed) {
  if (before == now) return;
  if (!now.is_object() || !before.is_object()) {
    changed.push_back(fmt::format("{} was {} and is {}", name,
                                  before.is_null() ? "missing" : brief(before), brief(now)));
    return;
  }
  for (const auto& [key, value] : now.items()) {
    if (name.empty() && !before.contains(key)) continue;
    compare(before.value(key, nlohmann::json()), value, name.empty() ? key : name + "." + key,
            changed);
  }
}

}  // namespace

std::vector<std::string> changes(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> changed;
  compare(before, now, "", changed);
  return changed;
}

namespace {

// Returns the settings of the snapshot. Older versions stored the tokenizer's hash as "tokenizer",
// which is now a setting; it is not compared.
nlohmann::json settings_in(const model::Snapshot& snapshot) {
  nlohmann::json kept = snapshot.state.value("settings", nlohmann::json::object());
  if (kept.is_object() && !kept.contains("tokenizer_hash")) kept.erase("tokenizer");
  // Older versions lack some fields of the Spec, which then have their defaults.
  if (kept.is_object() && kept.contains("spec"))
    kept["spec"] = nlohmann::json::parse(
        model::write_spec(model::validated(model::read_spec(kept["spec"].dump(), snapshot.path))));
  return kept;
}

void set_dropout(model::Stack& stack, const model::DropoutSpec& dropout) {
  stack.embedding_dropout.probability = dropout.embedding;
  for (model::Block& block : stack.blocks) {
    for (Dropout* of_output : {&block.attention_dropout, &block.cross_dropout, &block.ffn_dropout})
      of_output->probability = dropout.residual;
    if (block.cross) block.cross->weight_dropout.probability = dropout.attention;
    std::visit(
        [&](auto& mixer) {
          if constexpr (requires { mixer.weight_dropout; })
            mixer.weight_dropout.probability = dropout.attention;
        },
        block.mixer);
  }
}

// Returns a setting of the snapshot; null if it has no such setting.
nlohmann::json kept_setting(const Job& job, const std::string& name) {
  if (!job.snapshot) return nullptr;
  const nlohmann::json kept = job.snapshot->state.value("settings", nlohmann::json::object());
  return kept.is_object() ? kept.value(name, nlohmann::json()) : nlohmann::json();
}

Cost cost_of(const Job& job, const model::Spec& spec, const PassSize& size) {
  const TrainOptions& o = job.options;
  const bool packed = o.moments == MomentPrecision::bits8;
  model::Transformer model(spec);
  choose_trained(job, model);
  TrainedSizes sizes;
  for (const auto& [name, parameter] : model::parameters_of(model)) {
    const int64_t count = elements(parameter->shape);
    sizes.parameters += count;
    if (!parameter->trainable) continue;
    sizes.trained += count;
    sizes.moment_bytes += moment_bytes(name, *parameter, {o.optimizer, packed});
  }
  sizes.frozen_bytes =
      o.lora.rank > 0 ? job.base_bytes
                      : static_cast<uint64_t>(sizes.parameters - sizes.trained) * sizeof(float);
  const int64_t layers = recomputed_layers(spec, -1);
  sizes.kept = kept_by_adapters(model, o.lora) * (layers - recomputed_layers(spec, o.recompute)) /
               std::max<int64_t>(1, layers);
  const model::Parameter& head = spec.head.tied ? model.token_embedding : model.head.output.weight;
  const Savings savings = {.recompute = o.recompute,
                           .logit_rows = size.outputs,
                           .frozen_head = !head.trainable,
                           .summed_passes = size.summed_passes,
                           .moments = {o.optimizer, packed}};
  const Cost all = training_cost(spec, size.batch, size.length, o.accumulate, job.compute, savings);
  const bool part = o.lora.rank > 0 || !o.freeze.empty();
  return part ? cost_of_part(all, sizes, o.accumulate, job.compute, savings) : all;
}

}  // namespace

void open_snapshot(Job& job, const Say& say) {
  if (is_folder(job.options.out)) job.snapshot = model::load_latest_snapshot(job.options.out, say);
  job.compute = compute_dtype(job);
}

// Called by plan_cost(), and again by prepare() when the tokenised data is in memory.
void check_memory(Job& job) {
  TrainPlan& plan = job.plan;
  const uint64_t limit = job.options.memory_limit;
  plan.process_bytes = process_bytes(job);
  plan.total_bytes =
      plan.weight_bytes + plan.optimizer_bytes + plan.activation_bytes + plan.process_bytes;
  // The plan includes the memory that is already in use.
  plan.available_bytes = limit > 0 ? limit : available_memory() + resident_memory();
  if (plan.total_bytes <= plan.available_bytes) return;
  fail(ErrorKind::OutOfMemory,
       "memory: training needs about {} MB (weights and gradients {}, optimiser {}, activations "
       "{}, process {}), {} are available; expected less: a smaller `batch` with "
       "`accumulate`, a shorter `context`, or a smaller model",
       plan.total_bytes >> 20, plan.weight_bytes >> 20, plan.optimizer_bytes >> 20,
       plan.activation_bytes >> 20, plan.process_bytes >> 20, plan.available_bytes >> 20);
}

void plan_cost(Job& job, const model::Spec& spec, const PassSize& size) {
  TrainPlan& plan = job.plan;
  const Cost cost = cost_of(job, spec, size);
  const TrainOptions& o = job.options;
  plan.steps = o.steps;
  plan.parameters = cost.parameters;
  plan.trained_parameters = cost.trained;
  plan.weight_bytes = cost.weight_bytes;
  if (o.average > 1)  // the weights of N evaluations, and their mean
    plan.weight_bytes += static_cast<uint64_t>(cost.trained * (o.average + 1)) * sizeof(float);
  plan.optimizer_bytes = o.ranks != nullptr && o.sharing.shard == Sharded::optimizer
                             ? cost.optimizer_bytes / static_cast<uint64_t>(o.ranks->size())
                             : cost.optimizer_bytes;
  plan.activation_bytes =
      static_cast<uint64_t>(static_cast<double>(cost.activation_bytes) * (size.varies ? kGaps : 1));
  plan.flops_per_step = cost.flops_per_step;
  plan.precision = name_of(job.compute);
  plan.isa = instruction_set();
  plan.threads = thread_count();
  check_memory(job);
}

int64_t setting_of_snapshot(const Job& job, const std::string& name, int64_t missing) {
  const nlohmann::json kept = kept_setting(job, name);
  return kept.is_number_integer() ? kept.get<int64_t>() : missing;
}

double number_of_snapshot(const Job& job, const std::string& name, double missing) {
  const nlohmann::json kept = kept_setting(job, name);
  return kept.is_number() ? kept.get<double>() : missing;
}

bool evaluates_start(const Job& job) {
  return job.task->traits().evaluates_start || (job.task->evaluates() && !job.options.from.empty());
}

bool ended_early(const Job& job) {
  return job.snapshot && job.options.patience > 0 && job.snapshot->step < job.options.steps &&
         job.snapshot->state.value("stale", int64_t{0}) >= job.options.patience;
}

void check_settings(const Job& job, const Say& say) {
  if (!job.snapshot) return;
  nlohmann::json before = settings_in(*job.snapshot);
  if (const int64_t steps = setting_of_snapshot(job, "steps", job.options.steps);
      steps < job.options.steps) {
    before["steps"] = job.options.steps;
    if (!ended_early(job))
      say(fmt::format(
          "the run had {} steps and continues to step {}; from here on, its learning rate "
          "is that of a run of {} steps",
          steps, job.options.steps, job.options.steps));
  }
  const std::vector<std::string> changed = changes(before, job.settings);
  if (!changed.empty() && !job.options.allow_change) {
    fail_field(ErrorKind::InvalidArgument, "out",
               "{} holds a run with other settings ({}); expected the same, another directory, or "
               "`allow_change`",
               job.options.out, fmt::join(changed, "; "));
  }
  const auto require_same = [&](const char* key, const char* first, const char* what) {
    const auto value_in = [&](const nlohmann::json& settings) {
      return settings.is_object() ? settings.value(key, first) : std::string(first);
    };
    check_field(value_in(before) == value_in(job.settings), key,
                "{} holds a run with {} {}; expected the same, also with `allow_change`",
                job.options.out, what, value_in(before));
  };
  require_same("moments", "fp32", "moments of");
  require_same("optimizer", "adamw", "the optimizer");
}

void choose_trained(const Job& job, model::Transformer& model) {
  job.task->choose_trainable(model);
  if (!job.options.from.empty()) freeze_buffers(model, *job.family);
  freeze(model, *job.family, job.options.freeze);
  if (job.start)
    add_start_adapter(model, *job.start, job.options.lora);
  else if (job.options.lora.rank > 0)
    add_new_adapters(model, *job.family, job.options.lora, job.options.seed);
}

void choose_model(Job& job, const model::Spec& spec, const std::function<void()>& begin) {
  bool complete = job.snapshot.has_value();  // false if some parameters are not trained
  if (job.snapshot) {
    job.model = model::Transformer(spec);
    choose_trained(job, job.model);
    for (const auto& [name, parameter] : model::parameters_of(job.model))
      complete = complete && parameter->trainable;
  }
  if (!complete) {
    begin();
    choose_trained(job, job.model);
  }
  set_dropout(job.model.encoder, job.dropout);
  set_dropout(job.model.decoder, job.dropout);
  if (job.snapshot) {
    restore_weights(job.model, *job.snapshot);
    job.plan.from = job.snapshot->path;
    job.plan.first_step = job.snapshot->step;
  }
  move_to(default_device(), job.model);
}

std::string change_of_class(const Job& job) {
  if (!job.snapshot) return "";
  const std::string now = numeric_class(job.compute),
                    before = job.snapshot->state.value("numeric_class", now);
  if (before == now) return "";
  return fmt::format(
      "the run continues in {} of CPU class {} (before: {}), so its results no longer "
      "have the same bits as those of an uninterrupted run",
      name_of(job.compute), now, before);
}

}  // namespace fovea::train
