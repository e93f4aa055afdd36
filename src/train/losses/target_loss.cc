#include "losses/target_loss.h"

#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

Tensor sum_over(const Tensor& x, double divisor) {
  return cast(scale(sum(x), static_cast<float>(1 / divisor)), DType::f64);
}

Tensor times_weights(const Tensor& x, const Tensor& weights) {
  return weights ? multiply(x, cast(weights.to(x.device()), x.dtype())) : x;
}

// The weights of the labels that texts have; others have weight 1.   -> f32 [B, L]
Tensor weights_of_sets(const LabelSets& sets) {
  if (!sets.weights) return {};
  const HostValues<float> targets(sets.targets);
  return tensor_from<float>(sets.targets.shape(), [&](int64_t i) {
    const auto label = static_cast<size_t>(i % sets.targets.dim(1));
    return targets[i] > 0 ? (*sets.weights)[label] : 1;
  });
}

// -> f32, of the shape of the labels; 0 where there is no label
Tensor weights_of_labels(const Tensor& labels, const std::vector<float>& of_labels) {
  const HostValues<int32_t> label(labels);
  return tensor_from<float>(labels.shape(), [&](int64_t i) {
    return label[i] >= 0 ? of_labels[static_cast<size_t>(label[i])] : 0;
  });
}

}  // namespace

Tensor span_logits(const Tensor& logits, const std::vector<Interval>& valid) {
  const int64_t B = logits.dim(0), T = logits.dim(1);
  // Element i of [B, 2, T] is that of text b, side i / T % 2 and token t.
  const Tensor indices = tensor_from<int32_t>({B * 2 * T}, [&](int64_t i) {
    const int64_t b = i / (2 * T), side = i / T % 2, t = i % T;
    return (b * T + t) * 2 + side;
  });
  const Tensor padding = tensor_from<float>({B * 2, T}, [&](int64_t i) {
    return i % T >= valid[static_cast<size_t>(i / (2 * T))].end ? kNoToken : 0;
  });
  const Tensor turned = gather(indices, logits.view({B * T * 2, 1})).view({B * 2, T});
  return add(turned, cast(padding.to(logits.device()), logits.dtype()));
}

Tensor target_loss(const Tensor& logits, const Tensor& labels, const Batch& batch, double divisor) {
  const auto like_logits = [&](const Tensor& x) {
    return cast(x.to(logits.device()), logits.dtype());
  };
  if (batch.as<AnswerSpans>()) {
    const auto& valid = batch.source.ids ? batch.source_valid : batch.target_valid;
    return cross_entropy(span_logits(logits, valid), labels.view({labels.size()}), divisor);
  }
  if (const auto* numbers = batch.as<Numbers>()) {
    const Tensor errors = subtract(logits, like_logits(numbers->targets));
    return sum_over(multiply(errors, errors), divisor);
  }
  if (const auto* sets = batch.as<LabelSets>()) {
    const Tensor log_p = log_sigmoid(multiply(logits, like_logits(sets->targets)));
    return sum_over(times_weights(log_p, weights_of_sets(*sets)),
                    -divisor * static_cast<double>(logits.dim(-1)));
  }
  const auto& weighted = std::get<WeightedLabels>(batch.meaning);
  const Tensor log_p = log_probability(logits, labels);
  return sum_over(times_weights(log_p, weights_of_labels(labels, *weighted.weights)), -divisor);
}

}  // namespace fovea::train
