#include "tasks/embedder_task.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "checkpoint/module_files.h"
#include "data/permutation.h"
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "embed/example_files.h"
#include "embed/losses.h"
#include "families/static_embedding.h"
#include "formats/peft/config.h"
#include "loop/adapters.h"
#include "loop/check_options.h"
#include "loop/recommended.h"
#include "loop/settings.h"
#include "loop/step_sharing.h"
#include "loop/trainer.h"
#include "ops/ops.h"
#include "tasks/embedder_objective.h"
#include "tasks/learned_pooling.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

using Texts = std::vector<infer::TokenizedText>;

constexpr int64_t kBatchTokens = 512;  // maximum tokens per pass, including padding
// The gradients of a step are sums of so many groups of passes, which processes can share: the tree
// of seven keeps two sums of all gradients, that of eight three.
constexpr size_t kMostGroups = 7;

// Trains an embedder on pairs, triplets or scored pairs.
class EmbedderTask : public TrainingTask {
 public:
  EmbedderTask(const EmbedderTraining& training, infer::SentenceModel model,
               const model::Spec& spec, infer::TextExamples examples)
      : TrainingTask({.measures_steps = training.learn_pooling == LearnedPooling::none,
                      .evaluates_start = !training.validation.empty(),
                      .shares_steps = true}),
        training_(training),
        origin_(std::move(model.origin)),
        modules_(std::move(model.modules)),
        format_(std::move(model.format)),
        examples_(std::move(examples)) {
    if (training.learn_pooling != LearnedPooling::none)
      pooling_ = std::make_unique<TrainedPooling>(training.learn_pooling, modules_, spec);
    if (!training.guide.empty()) guide_ = infer::Embedder::open(training.guide);
    if (!training.validation.empty()) validation_ = infer::read_scored_pairs(training.validation);
    check(training.validation.empty() || validation_.size() >= 2,
          "{}: {} pairs; expected at least 2", training.validation, validation_.size());
    for (const int64_t d : training.dimensions)
      check_field(d >= 1 && d <= modules_.width, "dimensions",
                  "{}; expected 1 to {}, the model's width", d, modules_.width);
    check_field(training.recompute == 0 || !(pooling_ ? pooling_->modules() : modules_).layers,
                "recompute",
                "the vectors are means over all layers, which are kept; expected a model whose "
                "vectors depend on the last layer");
  }

  const std::string& first_record() const { return examples_.first; }
  int64_t count() const { return examples_.count(); }
  const std::optional<infer::Embedder>& guide() const { return guide_; }
  int64_t held_out() const { return std::ssize(validation_); }
  int64_t batches_per_epoch() const { return (count() + training_.batch - 1) / training_.batch; }
  double tokens_per_example() const;
  const text::Tokenizer& tokenizer() const { return format_.tokenizer(); }

  std::vector<model::NamedParameter> own_parameters() const override {
    return pooling_ ? pooling_->parameters() : std::vector<model::NamedParameter>();
  }
  // A step would change the pooling.
  StepLoss backward(const model::Transformer& model, int64_t step) const override;
  double steps_per_epoch() const override { return static_cast<double>(batches_per_epoch()); }
  infer::EvaluationTask evaluation() const override;
  bool evaluates() const override { return !validation_.empty(); }
  infer::Predictions predict(const model::Transformer& model) const override;
  void write_model(const std::string& folder, model::Transformer& model) const override;

 private:
  Tensor vectors(const model::Transformer& model, const infer::TokenBatch& batch) const {
    return infer::text_vectors(model, pooling_ ? pooling_->modules() : modules_, batch, 0,
                               DType::f32, nullptr, training_.recompute);
  }
  Tensor vectors(const model::Transformer& model, const Texts& texts) const {
    return infer::in_batches(texts, modules_.width, 0,
                             [&](const infer::TokenBatch& batch) { return vectors(model, batch); });
  }
  Texts tokenized(const std::vector<const std::string*>& texts) const {
    return tokenized(format_, texts);
  }
  static Texts tokenized(const infer::TextFormat& format,
                         const std::vector<const std::string*>& texts) {
    return infer::tokenize_all(texts.size(), [&](size_t i) { return format.text(*texts[i]); });
  }
  std::vector<size_t> examples_of(int64_t step) const;
  std::vector<float> scores_of(const std::vector<size_t>& chosen) const;
  // Texts that pass through the model together, and the gradients of the vectors of all texts.
  struct TextPass {
    const Texts* texts;
    Tensor gradient;
    std::vector<size_t> chosen;
  };
  // Computes the vectors of texts, [texts, width].
  struct TextModel {
    int64_t width;
    std::function<Tensor(const Texts&)> vectors;
  };
  Tensor vectors_of_step(const TextModel& model, const Texts& texts) const;
  Tensor vectors_by_guide(const std::vector<const std::string*>& texts) const;
  Tensor product(const model::Transformer& model, const TextPass& pass) const;
  Tensor group_loss(const model::Transformer& model, std::span<const TextPass> passes) const;
  void pass_on(const model::Transformer& model, const std::vector<TextPass>& passes) const;

  const EmbedderTraining training_;
  const model::Origin origin_;
  const infer::SentenceModules modules_;
  std::unique_ptr<TrainedPooling> pooling_;  // null: it is not trained
  const infer::TextFormat format_;
  const infer::TextExamples examples_;
  std::optional<infer::Embedder> guide_;
  std::vector<infer::ScoredPair> validation_;
};

// Caches gradients (Gao et al. 2021, arXiv:2101.06983): the loss of all vectors gives the gradient
// of each vector. Then the texts pass through the model again, a few at a time, to propagate these
// gradients. Memory therefore does not limit the number of negatives in a step.
TrainingTask::StepLoss EmbedderTask::backward(const model::Transformer& model, int64_t step) const {
  const std::vector<size_t> chosen = examples_of(step);
  std::vector<const std::string*> texts[2];  // anchors; positives, then negatives
  for (size_t column = 0; column < examples_.texts.size(); ++column)
    for (const size_t i : chosen)
      texts[std::min<size_t>(column, 1)].push_back(&examples_.texts[column][i]);
  const Texts sides[] = {tokenized(texts[0]), tokenized(texts[1])};
  const TextModel trained = {modules_.width, [&](const Texts& own) { return vectors(model, own); }};
  EmbedderStep of_step = {
      {vectors_of_step(trained, sides[0]), vectors_of_step(trained, sides[1])}, {}, {}};
  if (guide_) of_step.guide = {vectors_by_guide(texts[0]), vectors_by_guide(texts[1])};
  of_step.scores = scores_of(chosen);
  Tensor &a = of_step.vectors.anchors, &b = of_step.vectors.candidates;
  a.want_gradient();
  b.want_gradient();
  const Tensor total = embedder_loss(training_, of_step);
  fovea::backward(total);
  StepLoss result{.loss = to_floats(total)[0]};
  std::vector<TextPass> passes;
  for (const auto& [texts_of_side, gradient] :
       {std::pair(&sides[0], a.gradient()), {&sides[1], b.gradient()}}) {
    for (std::vector<size_t>& together : infer::batches_by_length(*texts_of_side, kBatchTokens))
      passes.push_back({texts_of_side, gradient, std::move(together)});
    for (const infer::TokenizedText& text : *texts_of_side) result.tokens += std::ssize(text.ids);
  }
  pass_on(model, passes);
  return result;
}

// Each process of a job computes the vectors of a part of the texts.
Tensor EmbedderTask::vectors_of_step(const TextModel& model, const Texts& texts) const {
  if (sharing_ == nullptr) return model.vectors(texts);
  const auto part = [&](int64_t rank) {
    return texts.begin() + std::ssize(texts) * rank / sharing_->size();
  };
  const Texts own(part(sharing_->rank()), part(sharing_->rank() + 1));
  std::vector<double> numbers;
  if (!own.empty())
    for (const float x : to_floats(model.vectors(own))) numbers.push_back(x);
  const std::vector<double> all = sharing_->gather(numbers);
  return tensor_of(std::vector<float>(all.begin(), all.end()), {std::ssize(texts), model.width});
}

Tensor EmbedderTask::vectors_by_guide(const std::vector<const std::string*>& texts) const {
  const infer::SentenceModel& model = guide_->parts().model;
  const int64_t width = model.modules.width;
  const auto vectors = [&](const Texts& own) {
    return infer::in_batches(own, width, 0, [&](const infer::TokenBatch& batch) {
      return model.embed(batch, 0, DType::f32);
    });
  };
  return vectors_of_step({width, vectors}, tokenized(model.format, texts));
}

std::vector<size_t> EmbedderTask::examples_of(int64_t step) const {
  const auto epoch = static_cast<uint64_t>(step / batches_per_epoch());
  const Permutation order(static_cast<uint64_t>(count()), training_.seed + epoch);
  const int64_t first = step % batches_per_epoch() * training_.batch;
  std::vector<size_t> chosen;
  for (int64_t i = first; i < std::min(first + training_.batch, count()); ++i)
    chosen.push_back(static_cast<size_t>(order(static_cast<uint64_t>(i))));
  return chosen;
}

// Returns the scores of scored pairs, or those of a teacher.
std::vector<float> EmbedderTask::scores_of(const std::vector<size_t>& chosen) const {
  const bool teacher = examples_.teacher_scores > 0;
  const std::vector<float>& all = teacher ? examples_.teacher : examples_.scores;
  const size_t each = teacher ? static_cast<size_t>(examples_.teacher_scores) : 1;
  std::vector<float> scores;
  if (all.empty()) return scores;
  for (const size_t i : chosen)
    scores.insert(scores.end(), all.begin() + static_cast<int64_t>(i * each),
                  all.begin() + static_cast<int64_t>((i + 1) * each));
  return scores;
}

// Returns a number whose gradient is that of the loss with respect to these texts.
Tensor EmbedderTask::product(const model::Transformer& model, const TextPass& pass) const {
  const int64_t width = pass.gradient.dim(1);
  const Tensor wanted = empty({std::ssize(pass.chosen), width});
  for (size_t i = 0; i < pass.chosen.size(); ++i)
    copy_elements(wanted, static_cast<int64_t>(i) * width, pass.gradient,
                  static_cast<int64_t>(pass.chosen[i]) * width, width);
  return infer::inner_product(vectors(model, infer::token_batch(*pass.texts, pass.chosen)), wanted);
}

void EmbedderTask::pass_on(const model::Transformer& model,
                           const std::vector<TextPass>& passes) const {
  const size_t groups = std::min(passes.size(), kMostGroups);
  const auto group = [&](size_t n) {
    const auto bound = [&](size_t i) { return passes.data() + passes.size() * i / groups; };
    return std::span(bound(n), bound(n + 1));
  };
  if (sharing_ == nullptr) {
    PassGradients gradients;
    for (size_t n = 0; n < groups; ++n)
      gradients.backward(group_loss(model, group(n)), static_cast<int64_t>(n));
    return gradients.finish();
  }
  std::vector<PassUnits> units;
  for (size_t n = 0; n < groups; ++n) {
    units.push_back({.cost = 0});
    for (const TextPass& pass : group(n))
      units.back().cost += static_cast<double>(std::ssize(pass.chosen) *
                                               std::ssize((*pass.texts)[pass.chosen.front()].ids));
  }
  for (const StepNode& node : sharing_->share(units)) {
    PassGradients gradients;
    for (const UnitRange& range : node.ranges) {
      const Tensor loss = group_loss(model, group(static_cast<size_t>(range.pass)));
      sharing_->expect(node, range, gradients);
      gradients.backward(loss, range.last);
    }
    sharing_->add(gradients);
  }
  sharing_->exchange({});
}

// Returns a number whose gradients are the sums of those of the passes, which run one after the
// other, so that the activations of one are in memory.
Tensor EmbedderTask::group_loss(const model::Transformer& model,
                                std::span<const TextPass> passes) const {
  if (passes.size() == 1) return product(model, passes[0]);
  for (const TextPass& pass : passes) fovea::backward(product(model, pass));
  model::Transformer shared = model;  // the same tensors
  std::vector<model::NamedParameter> parameters = model::parameters_of(shared);
  const std::vector<model::NamedParameter> own = own_parameters();
  parameters.insert(parameters.end(), own.begin(), own.end());
  Tensor total;
  for (const auto& [name, parameter] : parameters) {
    const Tensor& x = parameter->value;
    const Tensor gradient = x && x.wants_gradient() ? x.gradient() : Tensor();
    if (!gradient) continue;
    x.clear_gradient();
    const Tensor part = record(
        zeros({1}), {x},
        [gradient, slot = Saved::slot(x)](const Tensor&, Gradients& d) { d.pass(slot, gradient); });
    total = total ? add(total, part) : part;
  }
  return total;
}

// Returns the evaluation task "similarity" with only Spearman's correlation, which selects the best
// weights.
infer::EvaluationTask EmbedderTask::evaluation() const {
  infer::EvaluationTask task = infer::evaluation_task("similarity");
  std::erase_if(task.metrics,
                [&](const infer::Metric& metric) { return metric.name != task.decisive; });
  return task;
}

infer::Predictions EmbedderTask::predict(const model::Transformer& model) const {
  std::vector<const std::string*> first, second;
  for (const infer::ScoredPair& pair : validation_) {
    first.push_back(&pair.first);
    second.push_back(&pair.second);
  }
  const NoGradient no_gradient;
  const Tensor a = infer::unit_length(vectors(model, tokenized(first))),
               b = infer::unit_length(vectors(model, tokenized(second)));
  infer::Predictions found;
  for (size_t i = 0; i < validation_.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const double cosine =
        number_of(infer::inner_product(a.rows(row, row + 1), b.rows(row, row + 1)));
    found.similarities.emplace_back(cosine, validation_[i].score);
  }
  return found;
}

void EmbedderTask::write_model(const std::string& path, model::Transformer& model) const {
  StagedFolder folder(path);
  const std::string source = model::transformer_folder(training_.model);
  const std::string target = folder.path() + source.substr(training_.model.size());
  make_directories(target);
  model::copy_modules(training_.model, folder.path(), model.spec.width);
  if (modules_.static_vectors) {
    model::write_static(target, model.token_embedding.value, tokenizer());
    return folder.commit("modules.json");
  }
  if (training_.lora.rank > 0)
    model::save_adapter(target, model, origin_, facts_of(training_.lora, source));
  else
    model::save_model_files(target, model, std::nullopt, origin_);
  tokenizer().save(target);
  if (pooling_) pooling_->write(folder.path());
  folder.commit("modules.json");
}

// Returns the mean number of tokens of at most a thousand evenly spaced examples.
double EmbedderTask::tokens_per_example() const {
  const int64_t stride = (count() + 999) / 1000;
  std::vector<const std::string*> texts;
  int64_t examples = 0;
  for (int64_t i = 0; i < count(); i += stride, ++examples)
    for (const std::vector<std::string>& column : examples_.texts)
      texts.push_back(&column[static_cast<size_t>(i)]);
  int64_t tokens = 0;
  for (const infer::TokenizedText& text : tokenized(texts)) tokens += std::ssize(text.ids);
  return static_cast<double>(tokens) / static_cast<double>(examples);
}

void check_options(const EmbedderTraining& t) {
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
  check_field(t.patience == 0 || !t.validation.empty(), "patience",
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

nlohmann::ordered_json settings(const EmbedderTraining& t, const model::Spec& spec,
                                const EmbedderTask& task) {
  nlohmann::ordered_json s;
  s["spec"] = nlohmann::ordered_json::parse(model::write_spec(spec));
  s["data"] = hash_text(hash_bytes(read_file(t.data)));
  if (task.guide()) s["guide_hash"] = hash_text(task.guide()->fingerprint());
  s["tokenizer_hash"] = fmt::format("{:016x}", task.tokenizer().hash());
  s["precision"] = name_of(DType::f32);
  s.update(settings_of(t));
  return s;
}

// Sets the plan. In each step, the texts pass through the model twice, once without gradients; this
// takes 4/3 of the operations of a usual step.
void plan_embedder(Job& job, const EmbedderTask& task, const model::Spec& spec) {
  TrainPlan& plan = job.plan;
  const double tokens = std::max(1.0, task.tokens_per_example()),
               examples = static_cast<double>(std::min(job.options.batch, task.count()));
  const auto length = std::min(spec.context, static_cast<int64_t>(std::ceil(tokens / 2)));
  const int64_t rows = std::max<int64_t>(1, kBatchTokens / length);
  plan_rates(job);
  if (job.options.learning_rate == EmbedderTraining().learning_rate)
    plan.rate_reason = "fine-tuning of an embedder";
  plan.spec = spec;
  plan.objective = Objective::embedding;
  plan.vocabulary = task.tokenizer().size();
  plan.training_sequences = task.count();
  plan.validation_sequences = task.held_out();
  plan.training_tokens = std::llround(tokens * static_cast<double>(task.count()));
  plan.tokens_per_step = std::llround(tokens * examples);
  plan.epochs = static_cast<double>(job.options.steps) / task.steps_per_epoch();
  plan_cost(job, spec, {rows, length});
  plan.flops_per_step *= 4.0 / 3 * tokens * examples / static_cast<double>(rows * length);
}

}  // namespace

Job prepare_embedder(const EmbedderTraining& options, const Say& say) {
  check_options(options);
  infer::TextExamples examples =
      infer::read_text_examples(options.data, needs_teacher(options.loss));
  const EmbedderTraining training = with_loss(options, examples);
  const auto [weights, packing] = base_weights(training.lora);
  infer::SentenceModel model = infer::SentenceModel::open(training.model, weights, packing);
  infer::keep_all_elements(model.modules);
  for (const std::string& warning : model.warnings) say(warning);
  model::Transformer transformer = std::move(model.transformer);
  const model::Spec spec = transformer.spec;
  const model::Family& family = model::family_to_save(spec, model.origin);
  auto opened =
      std::make_unique<EmbedderTask>(training, std::move(model), spec, std::move(examples));
  EmbedderTask* const task = opened.get();
  say(task->first_record());
  if (task->guide())
    for (const std::string& warning : task->guide()->warnings()) say(warning);
  Job job;
  job.task = std::move(opened);
  job.family = &family;
  job.base_bytes = model::weight_bytes(transformer);
  job.options = core_options(training, training.epochs * task->batches_per_epoch());
  open_snapshot(job, say);
  plan_embedder(job, *task, spec);
  job.settings = settings(training, spec, *task);
  check_settings(job, say);
  if (const std::string change = change_of_class(job); !change.empty()) say(change);
  choose_model(job, spec, [&] {
    job.model = std::move(transformer);
    job.plan.from = training.model;
  });
  return job;
}

}  // namespace fovea::train
