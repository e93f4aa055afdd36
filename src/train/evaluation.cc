#include "train/evaluation.h"

#include <algorithm>
#include <map>
#include <numbers>

#include "kernels/sum_tree.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

void add_answers(const Answers& found, std::vector<std::pair<int32_t, int32_t>>& all) {
  const int64_t V = found.logits.dim(-1);
  for (int64_t i = 0; i < found.labels.size(); ++i) {
    const int32_t label = found.labels.data_as<int32_t>()[i];
    if (label < 0) continue;
    const float* row = found.logits.data_as<float>() + i * V;
    all.emplace_back(label, static_cast<int32_t>(std::max_element(row, row + V) - row));
  }
}

}  // namespace

Score score(const Transformer& model, DType compute, int64_t count,
            const std::function<Batch(int64_t n)>& batch) {
  const NoGradient off;
  Pass pass;
  pass.compute = compute;
  Score total;
  std::vector<double> losses;
  const bool chooses = !model.spec.decoder || model.spec.head.kind != HeadKind::language_model;
  for (int64_t n = 0; n < count; ++n) {
    const Batch next = batch(n);
    const Answers found = answers(model, next, pass);
    const UnitScope units(found.units);
    losses.push_back(*cross_entropy(found.logits, found.labels, 1).data_as<double>());
    total.asked += next.asked;
    if (chooses) add_answers(found, total.answers);
  }
  total.loss = tree_sum(losses) / static_cast<double>(std::max<int64_t>(1, total.asked));
  return total;
}

Score score(const Transformer& model, DType compute, const Examples& examples) {
  return score(model, compute, examples.validation_batches(),
               [&](int64_t n) { return examples.validation(n); });
}

double accuracy(const Score& score) {
  const auto right =
      std::count_if(score.answers.begin(), score.answers.end(),
                    [](const auto& answer) { return answer.first == answer.second; });
  return static_cast<double>(right) /
         static_cast<double>(std::max<size_t>(1, score.answers.size()));
}

double mean_f1(const Score& score) {
  struct Counts {
    double right = 0, labelled = 0, answered = 0;
  };
  std::map<int32_t, Counts> counts;
  for (const auto& [label, answer] : score.answers) {
    counts[label].right += label == answer;
    ++counts[label].labelled;
    ++counts[answer].answered;
  }
  double sum = 0, labels = 0;
  for (const auto& [label, c] : counts) {
    if (c.labelled == 0) continue;
    sum += 2 * c.right / (c.labelled + c.answered);
    ++labels;
  }
  return labels > 0 ? sum / labels : 0;
}

double bits_per_byte(double loss, int64_t tokens, int64_t bytes) {
  return bytes > 0
             ? loss * static_cast<double>(tokens) / static_cast<double>(bytes) / std::numbers::ln2
             : 0;
}

}  // namespace fovea
