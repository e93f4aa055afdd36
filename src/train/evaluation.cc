#include "train/evaluation.h"

#include <algorithm>

#include "kernels/sum_tree.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

void add_choices(const Answers& found, Choices& all) {
  const Tensor logits = found.logits.to(cpu_device());
  const int64_t V = logits.dim(-1);
  for (int64_t i = 0; i < found.labels.size(); ++i) {
    const int32_t label = found.labels.data_as<int32_t>()[i];
    if (label < 0) continue;
    const float* row = logits.data_as<float>() + i * V;
    all.emplace_back(label, static_cast<int32_t>(std::max_element(row, row + V) - row));
  }
}

}  // namespace

Predictions predict(const Transformer& model, DType compute, int64_t count,
                    const std::function<Batch(int64_t n)>& batch) {
  const NoGradient off;
  Pass pass;
  pass.compute = compute;
  Predictions total;
  std::vector<double> losses;
  const bool chooses = !model.spec.decoder || model.spec.head.kind != HeadKind::language_model;
  for (int64_t n = 0; n < count; ++n) {
    const Batch next = batch(n);
    total.labels += next.asked;
    if (!chooses) {
      losses.push_back(number_of(label_loss(model, next, pass, 1)));
      continue;
    }
    const Answers found = answers(model, next, pass);
    const UnitScope units(found.units);
    losses.push_back(number_of(cross_entropy(found.logits, found.labels, 1)));
    add_choices(found, total.choices);
  }
  total.loss = tree_sum(losses) / static_cast<double>(std::max<int64_t>(1, total.labels));
  return total;
}

Predictions predict(const Transformer& model, DType compute, const Examples& examples) {
  return predict(model, compute, examples.validation_batches(),
                 [&](int64_t n) { return examples.validation(n); });
}

}  // namespace fovea
