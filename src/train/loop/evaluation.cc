#include "loop/evaluation.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "loop/shared_evaluation.h"
#include "losses/target_loss.h"
#include "ops/row_loss.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Adds the labels of rows [begin, end), each with the index of its largest logit.
void add_choices(const Tensor& of_rows, const Tensor& labels, int64_t begin, infer::Choices& all) {
  const HostValues<float> logits(of_rows);
  const HostValues<int32_t> of_all(labels);
  for (int64_t i = 0; i < logits.size() / of_rows.dim(-1); ++i) {
    const int32_t label = of_all[begin + i];
    if (label < 0) continue;
    const std::span<const float> row = logits.row(i);
    all.emplace_back(label, static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
  }
}

// Returns the sum of the losses of a batch, as label_loss() does, and adds the choices.
double loss_with_choices(const model::Transformer& model, const Batch& batch,
                         const model::Pass& pass, infer::Choices& choices) {
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  std::optional<RowLoss> loss;
  each_block_of_logits(model, inputs, [&](const Tensor& logits, int64_t begin, int64_t end) {
    const int64_t V = logits.dim(-1);
    if (!loss)
      loss.emplace("evaluation", logits, inputs.labels, Rows{inputs.labels.size(), V},
                   LossOptions{.divisor = 1});
    loss->forward(logits, begin, end);
    add_choices(logits, inputs.labels, begin, choices);
  });
  return loss ? number_of(loss->total()) : 0;
}

// Adds the outputs of texts with several labels or with a number; returns the sum of their losses.
double loss_with_outputs(const model::Transformer& model, const Batch& batch,
                         const model::Pass& pass, infer::Predictions& found) {
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  const Tensor outputs = model.logits(inputs.hidden, inputs.valid);
  const auto* const numbers = batch.as<Numbers>();
  const HostValues<float> z(outputs),
      targets(numbers ? numbers->targets : std::get<LabelSets>(batch.meaning).targets);
  if (!numbers) found.sets.width = outputs.dim(-1);
  for (int64_t i = 0; i < z.size(); ++i) {
    if (numbers) {
      found.numbers.emplace_back(targets[i], z[i]);
      continue;
    }
    found.sets.labelled.push_back(targets[i] > 0);
    found.sets.chosen.push_back(z[i] > 0);
  }
  return number_of(target_loss(outputs, inputs.labels, batch, 1));
}

// Returns the most likely answer in a row of span_logits(): its first token is at most its last
// one, and it has at most kLongestAnswer tokens, as in the script run_qa.py of transformers.
infer::SpanPrediction best_span(std::span<const float> first_tokens,
                                std::span<const float> last_tokens, const Interval& context) {
  const float *const first = first_tokens.data(), *const last = last_tokens.data();
  constexpr int64_t kLongestAnswer = 30;
  infer::SpanPrediction best;
  best.score = -std::numeric_limits<double>::infinity();
  best.none = double{first[0]} + double{last[0]};
  for (int64_t begin = context.begin; begin < context.end; ++begin) {
    for (int64_t end = begin; end < std::min(begin + kLongestAnswer, context.end); ++end) {
      const double score = double{first[begin]} + double{last[end]};
      if (score <= best.score) continue;
      best.begin = begin, best.end = end, best.score = score;
    }
  }
  return best;
}

// Adds the most likely answer of each row; returns the sum of the losses.
double loss_with_spans(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
                       infer::Predictions& found) {
  const HeadInputs inputs = head_inputs(model, batch, pass);
  const UnitScope units(inputs.units);
  const Tensor outputs = model.logits(inputs.hidden, inputs.valid);
  const HostValues<float> logits(span_logits(outputs, inputs.valid));  // [B * 2, T]
  const auto& [samples, contexts] = std::get<AnswerSpans>(batch.meaning);
  for (size_t row = 0; row < samples.size(); ++row) {
    const auto first = 2 * static_cast<int64_t>(row);
    found.spans.push_back(best_span(logits.row(first), logits.row(first + 1), contexts[row]));
    found.spans.back().sample = samples[row];
  }
  return number_of(target_loss(outputs, inputs.labels, batch, 1));
}

// Adds the number of labels up to the end of each text to `ends`.
void add_ends(const Batch& batch, std::vector<int64_t>& ends) {
  const HostValues<int32_t> labels(batch.labels);
  for (int64_t row = 0; row < batch.labels.dim(0); ++row) {
    const auto count =
        std::ranges::count_if(labels.row(row), [](int32_t label) { return label >= 0; });
    ends.push_back((ends.empty() ? 0 : ends.back()) + count);
  }
}

bool needs_choices(const infer::EvaluationTask& task) {
  return std::any_of(task.metrics.begin(), task.metrics.end(),
                     [](const infer::Metric& metric) { return metric.name == "accuracy"; });
}

}  // namespace

infer::Predictions predict(const model::Transformer& model, DType compute,
                           const infer::EvaluationTask& task, int64_t count,
                           const std::function<Batch(int64_t n)>& batch, Communicator* ranks) {
  const NoGradient off;
  model::Pass pass;
  pass.compute = compute;
  return predict_batches(ranks, count, [&](int64_t n) {
    const Batch next = batch(n);
    infer::Predictions found;
    found.labels = next.predictions;
    if (model.spec.head.kind == model::HeadKind::token) add_ends(next, found.ends);
    const bool outputs = next.as<LabelSets>() || next.as<Numbers>();
    found.loss = next.as<AnswerSpans>() ? loss_with_spans(model, next, pass, found)
                 : outputs              ? loss_with_outputs(model, next, pass, found)
                 : needs_choices(task)  ? loss_with_choices(model, next, pass, found.choices)
                                        : number_of(label_loss(model, next, pass, 1));
    return found;
  });
}

infer::Predictions predict(const model::Transformer& model, DType compute,
                           const infer::EvaluationTask& task, const Examples& examples) {
  return predict(model, compute, task, examples.validation_batches(),
                 [&](int64_t n) { return examples.validation(n); });
}

}  // namespace fovea::train
