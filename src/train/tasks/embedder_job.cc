#include "tasks/embedder_job.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "checkpoint/module_files.h"
#include "data/permutation.h"
#include "formats/peft/config.h"
#include "fovea/infer/metrics.h"
#include "loop/adapters.h"
#include "loop/check_options.h"
#include "loop/recommended.h"
#include "loop/settings.h"
#include "tasks/cached_gradients.h"

namespace fovea::train {

void check_embedder_options(const EmbedderTraining& t) {
  check_fields(t);
  check_out(t.out);
  check_adapter_options(t.lora, model::transformer_folder(t.model));
  check_field(t.lora.rank == 0 || !model::holds_adapter(model::transformer_folder(t.model)),
              "model", "{}: is an adapter; expected a model, such as one that it is merged into",
              t.model);
  check_field(
      t.freeze.empty() || t.lora.rank == 0, "freeze",
      "given with `lora`, which trains only the adapters of `lora_targets`; expected one of "
      "them");
  for (const auto& [field, value] :
       {std::pair("evaluate_every", t.evaluate_every), {"patience", t.patience}})
    check_field(value == 0 || !t.validation.empty(), field,
                "given without `validation`; expected both");
}

TrainOptions core_options(const EmbedderTraining& training, int64_t steps) {
  TrainOptions options;
  options.from = training.model;
  options.lora = training.lora;
  options.freeze = training.freeze;
  options.moments = training.moments;
  options.recompute = training.recompute;
  options.out = training.out;
  options.steps = steps;
  options.batch = training.batch;
  options.learning_rate = training.learning_rate;
  options.final_rate = 0;
  options.warmup = static_cast<int64_t>(training.warmup * static_cast<double>(steps));
  options.beta2 = 0.999;  // usual for fine-tuning, whose steps are few and small
  options.weight_decay = training.weight_decay;
  options.precision = Precision::fp32;
  options.seed = training.seed;
  options.evaluate_every = training.evaluate_every;
  options.save_every = training.save_every;
  options.keep = training.keep;
  options.patience = training.patience;
  options.sample_every = 0;
  options.best_by = infer::evaluation_task("similarity").decisive;
  options.bad_steps = 1;
  options.allow_change = training.allow_change;
  options.ranks = training.ranks;
  options.sharing.shard = training.shard;
  return options;
}

std::vector<size_t> ExampleOrder::of_step(int64_t step) const {
  const auto epoch = static_cast<uint64_t>(step / steps_per_epoch());
  const Permutation order(static_cast<uint64_t>(count), seed + epoch);
  const int64_t first = step % steps_per_epoch() * batch;
  std::vector<size_t> chosen;
  for (int64_t i = first; i < std::min(first + batch, count); ++i)
    chosen.push_back(static_cast<size_t>(order(static_cast<uint64_t>(i))));
  return chosen;
}

infer::EvaluationTask spearman_evaluation() {
  infer::EvaluationTask task = infer::evaluation_task("similarity");
  std::erase_if(task.metrics,
                [&](const infer::Metric& metric) { return metric.name != task.decisive; });
  return task;
}

nlohmann::ordered_json embedder_settings(const EmbedderTraining& t, const model::Spec& spec,
                                         const text::Tokenizer& tokenizer) {
  nlohmann::ordered_json s;
  s["spec"] = nlohmann::ordered_json::parse(model::write_spec(spec));
  s["data"] = hash_text(hash_bytes(read_file(t.data)));
  s["tokenizer_hash"] = fmt::format("{:016x}", tokenizer.hash());
  s["precision"] = name_of(DType::f32);
  s.update(settings_of(t));
  return s;
}

void plan_examples(Job& job, const PlannedExamples& examples, const model::Spec& spec) {
  TrainPlan& plan = job.plan;
  const double tokens = std::max(1.0, examples.tokens_each),
               each_step = static_cast<double>(std::min(job.options.batch, examples.count));
  const auto length = std::min(spec.context, static_cast<int64_t>(std::ceil(tokens / 2)));
  const int64_t rows = std::max<int64_t>(1, kCachedPassTokens / length);
  plan_rates(job);
  if (job.options.learning_rate == EmbedderTraining().learning_rate)
    plan.rate_reason = "fine-tuning of an embedder";
  plan.spec = spec;
  plan.objective = Objective::embedding;
  plan.vocabulary = examples.vocabulary;
  plan.training_sequences = examples.count;
  plan.validation_sequences = examples.held_out;
  plan.training_tokens = std::llround(tokens * static_cast<double>(examples.count));
  plan.tokens_per_step = std::llround(tokens * each_step);
  plan.epochs = static_cast<double>(job.options.steps) / examples.steps_per_epoch;
  plan_cost(job, spec, {rows, length});
  plan.flops_per_step *= 4.0 / 3 * tokens * each_step / static_cast<double>(rows * length);
}

}  // namespace fovea::train
