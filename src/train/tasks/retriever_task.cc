#include "tasks/retriever_task.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "base/fields.h"
#include "base/files.h"
#include "checkpoint/module_files.h"
#include "embed/batching.h"
#include "embed/example_files.h"
#include "embed/losses.h"
#include "formats/peft/config.h"
#include "fovea/core/random.h"
#include "loop/adapters.h"
#include "loop/settings.h"
#include "ops/ops.h"
#include "tasks/cached_gradients.h"
#include "tasks/embedder_job.h"
#include "tasks/retriever_model.h"
#include "tasks/retriever_objective.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

// Trains a model that searches on pairs or triplets.
class RetrieverTask : public TrainingTask {
 public:
  RetrieverTask(const EmbedderTraining& training, std::unique_ptr<RetrieverModel> model,
                infer::TextExamples examples)
      : TrainingTask({.evaluates_start = !training.validation.empty(), .shares_steps = true}),
        training_(training),
        model_(std::move(model)),
        examples_(std::move(examples)) {
    traits_.measures_steps = model_->parameters().empty();  // a step would change them
    if (!training.validation.empty()) validation_ = infer::read_scored_pairs(training.validation);
    check(training.validation.empty() || validation_.size() >= 2,
          "{}: {} pairs; expected at least 2", training.validation, validation_.size());
  }

  ExampleOrder order() const { return {examples_.count(), training_.batch, training_.seed}; }
  const text::Tokenizer& tokenizer() const { return model_->format().tokenizer(); }
  PlannedExamples planned() const;

  std::vector<model::NamedParameter> own_parameters() const override {
    return model_->parameters();
  }
  StepLoss backward(const model::Transformer& model, int64_t step) const override;
  double steps_per_epoch() const override { return static_cast<double>(order().steps_per_epoch()); }
  infer::EvaluationTask evaluation() const override { return spearman_evaluation(); }
  bool evaluates() const override { return !validation_.empty(); }
  infer::Predictions predict(const model::Transformer& model) const override;
  void write_model(const std::string& folder, model::Transformer& model) const override;

 private:
  std::vector<RetrieverInput> inputs_of(const std::vector<size_t>& chosen, int64_t step) const;
  std::vector<float> teacher_of(const std::vector<size_t>& chosen) const;
  double risen_weight(int64_t step) const;
  Tensor rows_of_texts(const model::Transformer& model, const RetrieverInput& input, size_t first,
                       size_t last) const;
  Tensor rows_of_step(const model::Transformer& model, const RetrieverInput& input) const;
  Tensor product(const model::Transformer& model, const RetrieverInput& input,
                 const Tensor& gradient, const std::vector<size_t>& chosen) const;

  const EmbedderTraining training_;
  const std::unique_ptr<RetrieverModel> model_;
  const infer::TextExamples examples_;
  std::vector<infer::ScoredPair> validation_;
};

TrainingTask::StepLoss RetrieverTask::backward(const model::Transformer& model,
                                               int64_t step) const {
  const std::vector<size_t> chosen = order().of_step(step);
  const std::vector<RetrieverInput> inputs = inputs_of(chosen, step);
  std::vector<Tensor> rows;
  for (const RetrieverInput& input : inputs) {
    rows.push_back(rows_of_step(model, input));
    rows.back().want_gradient();
  }
  const RetrieverScores scores =
      model_->scores(inputs, rows, std::ssize(chosen), needs_all_scores(training_));
  Tensor total = retriever_loss(training_, scores, teacher_of(chosen));
  if (const Tensor further = model_->regulariser(rows, risen_weight(step)))
    total = add(total, cast(further, total.dtype()));
  fovea::backward(total);
  StepLoss result{.loss = number_of(total)};
  std::vector<CachedPass> passes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const RetrieverInput& input = inputs[i];
    // The gradient may have the shape of a view.
    const Tensor gradient =
        rows[i].gradient() ? rows[i].gradient().view(rows[i].shape()) : zeros(rows[i].shape());
    for (const std::vector<size_t>& together :
         infer::batches_by_length(input.texts, kCachedPassTokens))
      passes.push_back(
          {static_cast<double>(std::ssize(together) *
                               infer::length_of(input.texts[together.front()])),
           [&, gradient, together] { return product(model, input, gradient, together); }});
    for (const infer::TokenizedText& text : input.texts) result.tokens += infer::length_of(text);
  }
  pass_gradients(passes, trained_tensors(model, own_parameters()), sharing_);
  return result;
}

// The candidates are the positives of all queries, their first negatives, and so on, and at last
// the drawn ones.
std::vector<RetrieverInput> RetrieverTask::inputs_of(const std::vector<size_t>& chosen,
                                                     int64_t step) const {
  TextPointers queries, candidates;
  for (size_t column = 0; column < examples_.texts.size(); ++column)
    for (const size_t i : chosen)
      (column == 0 ? queries : candidates).push_back(&examples_.texts[column][i]);
  const size_t B = chosen.size(), given = candidates.size(), others = given - given / B;
  const auto drawn = std::min(others, static_cast<size_t>(model_->drawn_negatives()));
  std::vector<std::set<size_t>> taken(B);  // candidates of each query
  for (size_t i = 0; i < given; ++i) taken[i % B].insert(i);
  Random random(training_.seed, Stream::sampling, static_cast<uint32_t>(step));
  for (size_t n = 0; n < drawn; ++n)
    for (size_t b = 0; b < B; ++b) {
      size_t candidate = random.word() % given;
      while (!taken[b].insert(candidate).second) candidate = (candidate + 1) % given;
      candidates.push_back(candidates[candidate]);
    }
  return model_->inputs(queries, candidates);
}

std::vector<float> RetrieverTask::teacher_of(const std::vector<size_t>& chosen) const {
  std::vector<float> scores;
  const int64_t each = examples_.teacher_scores;
  for (const size_t i : chosen) {
    const auto first = examples_.teacher.begin() + static_cast<int64_t>(i) * each;
    scores.insert(scores.end(), first, first + each);
  }
  return scores;
}

// The weight of the regulariser rises with the square of the step over the first third of the run,
// as by SpladeRegularizerWeightSchedulerCallback of sentence-transformers.
double RetrieverTask::risen_weight(int64_t step) const {
  const int64_t steps = training_.epochs * order().steps_per_epoch();
  const double part =
      static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps / 3));
  return std::min(1.0, part * part);
}

// Returns the rows of texts [first, last), without gradients.
Tensor RetrieverTask::rows_of_texts(const model::Transformer& model, const RetrieverInput& input,
                                    size_t first, size_t last) const {
  const NoGradient off;
  const int64_t width = model_->width(), begin = input.starts[first];
  const Tensor all = zeros({input.starts[last] - begin, width});
  const std::vector<infer::TokenizedText> texts(
      input.texts.begin() + static_cast<std::ptrdiff_t>(first),
      input.texts.begin() + static_cast<std::ptrdiff_t>(last));
  for (std::vector<size_t>& together : infer::batches_by_length(texts, kCachedPassTokens)) {
    for (size_t& i : together) i += first;
    const Tensor rows = model_->rows(model, input, together);
    int64_t next = 0;
    for (const size_t i : together) {
      const int64_t count = input.rows_of(i);
      copy_elements(all, (input.starts[i] - begin) * width, rows, next * width, count * width);
      next += count;
    }
  }
  return all;
}

// Each process of a job computes the rows of a part of the texts.
Tensor RetrieverTask::rows_of_step(const model::Transformer& model,
                                   const RetrieverInput& input) const {
  const size_t count = input.texts.size();
  if (sharing_ == nullptr) return rows_of_texts(model, input, 0, count);
  const auto part = [&](int rank) {
    return count * static_cast<size_t>(rank) / static_cast<size_t>(sharing_->size());
  };
  const size_t first = part(sharing_->rank()), last = part(sharing_->rank() + 1);
  std::vector<double> numbers;
  for (const float x : to_floats(rows_of_texts(model, input, first, last))) numbers.push_back(x);
  const std::vector<double> all = sharing_->gather(numbers);
  return tensor_of(std::vector<float>(all.begin(), all.end()),
                   {input.starts.back(), model_->width()});
}

// Returns a number whose gradient is that of the loss with respect to these texts.
Tensor RetrieverTask::product(const model::Transformer& model, const RetrieverInput& input,
                              const Tensor& gradient, const std::vector<size_t>& chosen) const {
  std::vector<int32_t> wanted;
  for (const size_t i : chosen)
    for (int64_t row = input.starts[i]; row < input.starts[i + 1]; ++row)
      wanted.push_back(static_cast<int32_t>(row));
  return infer::inner_product(model_->rows(model, input, chosen),
                              gather(vector_tensor(wanted), gradient));
}

// Compares a few pairs at a time, since the scores of all first texts and all second ones are more
// than those of the pairs.
infer::Predictions RetrieverTask::predict(const model::Transformer& model) const {
  constexpr size_t kPairs = 32;
  const NoGradient off;
  infer::Predictions found;
  for (size_t first = 0; first < validation_.size(); first += kPairs) {
    const size_t last = std::min(first + kPairs, validation_.size());
    TextPointers queries, documents;
    for (size_t i = first; i < last; ++i) {
      queries.push_back(&validation_[i].first);
      documents.push_back(&validation_[i].second);
    }
    const std::vector<RetrieverInput> inputs = model_->inputs(queries, documents);
    std::vector<Tensor> rows;
    for (const RetrieverInput& input : inputs)
      rows.push_back(rows_of_texts(model, input, 0, input.texts.size()));
    const std::vector<float> scores =
        to_floats(model_->scores(inputs, rows, std::ssize(queries), false).own);
    for (size_t i = first; i < last; ++i)
      found.similarities.emplace_back(scores[i - first], validation_[i].score);
  }
  return found;
}

void RetrieverTask::write_model(const std::string& path, model::Transformer& model) const {
  StagedFolder folder(path);
  const std::string source = model::transformer_folder(training_.model);
  std::string target = folder.path();
  if (model_->copies_modules()) {
    target += source.substr(training_.model.size());
    make_directories(target);
    model::copy_modules(training_.model, folder.path(), model.spec.width);
  }
  model_->write_modules(folder.path(), model.spec);
  if (training_.lora.rank > 0)
    model::save_adapter(target, model, model_->origin(), facts_of(training_.lora, source));
  else
    model::save_model_files(target, model, std::nullopt, model_->origin());
  tokenizer().save(target);
  folder.commit(is_file(folder.path() + "/modules.json") ? "modules.json" : "config.json");
}

PlannedExamples RetrieverTask::planned() const {
  constexpr int64_t kMost = 1000;  // evenly spaced examples whose tokens are counted
  const int64_t stride = (examples_.count() + kMost - 1) / kMost;
  TextPointers queries, candidates;
  for (size_t column = 0; column < examples_.texts.size(); ++column)
    for (int64_t i = 0; i < examples_.count(); i += stride)
      (column == 0 ? queries : candidates)
          .push_back(&examples_.texts[column][static_cast<size_t>(i)]);
  int64_t tokens = 0;
  for (const RetrieverInput& input : model_->inputs(queries, candidates))
    for (const infer::TokenizedText& text : input.texts) tokens += infer::length_of(text);
  return {examples_.count(), std::ssize(validation_),
          static_cast<double>(tokens) / static_cast<double>(queries.size()), steps_per_epoch(),
          tokenizer().size()};
}

std::unique_ptr<RetrieverModel> open_retriever(const EmbedderTraining& training, TrainedKind kind,
                                               model::Transformer& transformer, const Say& say) {
  switch (kind) {
    case TrainedKind::sparse: return open_sparse_retriever(training, transformer, say);
    case TrainedKind::tokens: return open_token_retriever(training, transformer, say);
    default: return open_pair_scorer(training, transformer, say);
  }
}

}  // namespace

Job prepare_retriever(const EmbedderTraining& options, TrainedKind kind, const Say& say) {
  infer::TextExamples examples =
      infer::read_text_examples(options.data, reads_teacher(kind, options.loss));
  const EmbedderTraining training = with_retriever_loss(options, kind, examples);
  model::Transformer transformer;
  std::unique_ptr<RetrieverModel> model = open_retriever(training, kind, transformer, say);
  const model::Spec spec = transformer.spec;
  const model::Family& family = model::family_to_save(spec, model->origin());
  check_field(training.lora.rank == 0 || &family == model->origin().family, "lora",
              "the format of {} has no names for the new head; expected another model",
              training.model);
  say(examples.first);
  if (const std::string note = model->note(); !note.empty()) say(note);
  auto opened = std::make_unique<RetrieverTask>(training, std::move(model), std::move(examples));
  RetrieverTask* const task = opened.get();
  Job job;
  job.task = std::move(opened);
  job.family = &family;
  job.base_bytes = model::weight_bytes(transformer);
  job.options = core_options(training, training.epochs * task->order().steps_per_epoch());
  open_snapshot(job, say);
  plan_examples(job, task->planned(), spec);
  job.settings = embedder_settings(training, spec, task->tokenizer());
  check_settings(job, say);
  if (const std::string change = change_of_class(job); !change.empty()) say(change);
  choose_model(job, spec, [&] {
    job.model = std::move(transformer);
    job.plan.from = training.model;
  });
  return job;
}

}  // namespace fovea::train
