#include "train/evaluation.h"

#include <algorithm>
#include <optional>

#include "kernels/sum_tree.h"
#include "ops/row_loss.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Adds the labels of rows [begin, end), each with the index of its largest logit.
void add_choices(const Tensor& of_rows, const Tensor& labels, int64_t begin, Choices& all) {
  const Tensor logits = of_rows.to(cpu_device());
  const int64_t V = logits.dim(-1);
  for (int64_t i = 0; i < logits.size() / V; ++i) {
    const int32_t label = labels.data_as<int32_t>()[begin + i];
    if (label < 0) continue;
    const float* row = logits.data_as<float>() + i * V;
    all.emplace_back(label, static_cast<int32_t>(std::max_element(row, row + V) - row));
  }
}

// Returns the sum of the losses of a batch, as label_loss() does, and adds the choices.
double loss_with_choices(const Transformer& model, const Batch& batch, const Pass& pass,
                         Choices& choices) {
  const Questions asked = questions(model, batch, pass);
  const UnitScope units(asked.units);
  std::optional<RowLoss> loss;
  each_block_of_logits(model, asked, [&](const Tensor& logits, int64_t begin, int64_t end) {
    const int64_t V = logits.dim(-1);
    if (!loss)
      loss.emplace("evaluation", logits, asked.labels, Rows{asked.labels.size(), V},
                   LossOptions{.divisor = 1});
    loss->forward(logits, begin, end);
    add_choices(logits, asked.labels, begin, choices);
  });
  return loss ? number_of(loss->total()) : 0;
}

bool needs_choices(const EvaluationTask& task) {
  return std::any_of(task.metrics.begin(), task.metrics.end(),
                     [](const Metric& metric) { return metric.name == "accuracy"; });
}

}  // namespace

Predictions predict(const Transformer& model, DType compute, const EvaluationTask& task,
                    int64_t count, const std::function<Batch(int64_t n)>& batch) {
  const NoGradient off;
  Pass pass;
  pass.compute = compute;
  Predictions total;
  std::vector<double> losses;
  for (int64_t n = 0; n < count; ++n) {
    const Batch next = batch(n);
    total.labels += next.asked;
    losses.push_back(needs_choices(task) ? loss_with_choices(model, next, pass, total.choices)
                                         : number_of(label_loss(model, next, pass, 1)));
  }
  total.loss = tree_sum(losses) / static_cast<double>(std::max<int64_t>(1, total.labels));
  return total;
}

Predictions predict(const Transformer& model, DType compute, const EvaluationTask& task,
                    const Examples& examples) {
  return predict(model, compute, task, examples.validation_batches(),
                 [&](int64_t n) { return examples.validation(n); });
}

}  // namespace fovea
