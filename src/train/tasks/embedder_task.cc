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
#include "embed/batching.h"
#include "embed/embedder_parts.h"
#include "embed/example_files.h"
#include "embed/losses.h"
#include "families/static_embedding.h"
#include "formats/peft/config.h"
#include "loop/adapters.h"
#include "loop/settings.h"
#include "loop/step_sharing.h"
#include "loop/trainer.h"
#include "tasks/cached_gradients.h"
#include "tasks/embedder_job.h"
#include "tasks/embedder_objective.h"
#include "tasks/learned_pooling.h"
#include "tasks/retriever_objective.h"
#include "tasks/retriever_task.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

using Texts = std::vector<infer::TokenizedText>;

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
  ExampleOrder order() const { return {count(), training_.batch, training_.seed}; }
  double tokens_per_example() const;
  const text::Tokenizer& tokenizer() const { return format_.tokenizer(); }

  std::vector<model::NamedParameter> own_parameters() const override {
    return pooling_ ? pooling_->parameters() : std::vector<model::NamedParameter>();
  }
  // A step would change the pooling.
  StepLoss backward(const model::Transformer& model, int64_t step) const override;
  double steps_per_epoch() const override { return static_cast<double>(order().steps_per_epoch()); }
  infer::EvaluationTask evaluation() const override { return spearman_evaluation(); }
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

  const EmbedderTraining training_;
  const model::Origin origin_;
  const infer::SentenceModules modules_;
  std::unique_ptr<TrainedPooling> pooling_;  // null: it is not trained
  const infer::TextFormat format_;
  const infer::TextExamples examples_;
  std::optional<infer::Embedder> guide_;
  std::vector<infer::ScoredPair> validation_;
};

// See cached_gradients.h.
TrainingTask::StepLoss EmbedderTask::backward(const model::Transformer& model, int64_t step) const {
  const std::vector<size_t> chosen = order().of_step(step);
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
  std::vector<CachedPass> passes;
  for (const auto& [texts_of_side, gradient] :
       {std::pair(&sides[0], a.gradient()), {&sides[1], b.gradient()}}) {
    for (std::vector<size_t>& together :
         infer::batches_by_length(*texts_of_side, kCachedPassTokens)) {
      const double cost = static_cast<double>(std::ssize(together) *
                                              infer::length_of((*texts_of_side)[together.front()]));
      const TextPass pass = {texts_of_side, gradient, std::move(together)};
      passes.push_back({cost, [this, &model, pass] { return product(model, pass); }});
    }
    for (const infer::TokenizedText& text : *texts_of_side) result.tokens += std::ssize(text.ids);
  }
  pass_gradients(passes, trained_tensors(model, own_parameters()), sharing_);
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

nlohmann::ordered_json settings(const EmbedderTraining& t, const model::Spec& spec,
                                const EmbedderTask& task) {
  nlohmann::ordered_json s = embedder_settings(t, spec, task.tokenizer());
  if (task.guide()) s["guide_hash"] = hash_text(task.guide()->fingerprint());
  return s;
}

}  // namespace

Job prepare_embedder(const EmbedderTraining& options, const Say& say) {
  check_embedder_options(options);
  if (const TrainedKind kind = kind_of(options); kind != TrainedKind::dense)
    return prepare_retriever(options, kind, say);
  check_kind_options(options, TrainedKind::dense);
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
  job.options = core_options(training, training.epochs * task->order().steps_per_epoch());
  open_snapshot(job, say);
  plan_examples(job,
                {task->count(), task->held_out(), task->tokens_per_example(),
                 task->steps_per_epoch(), task->tokenizer().size()},
                spec);
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
