#include "losses/target_loss.h"

#include "ops/ops.h"

namespace fovea::train {
namespace {

Tensor sum_over(const Tensor& x, double divisor) {
  return cast(scale(sum(x), static_cast<float>(1 / divisor)), DType::f64);
}

Tensor times_weights(const Tensor& x, const Tensor& weights) {
  return weights ? multiply(x, cast(weights.to(x.device()), x.dtype())) : x;
}

// The weights of the labels that texts have; others have weight 1.   -> f32 [B, L]
Tensor weights_of_sets(const Batch& batch) {
  if (!batch.label_weights) return {};
  const Tensor weights = full(batch.targets.shape(), 1);
  for (int64_t i = 0; i < weights.size(); ++i)
    if (batch.targets.data_as<float>()[i] > 0)
      weights.data_as<float>()[i] = (*batch.label_weights)[static_cast<size_t>(i % weights.dim(1))];
  return weights;
}

// -> f32, of the shape of the labels; 0 where there is no label
Tensor weights_of_labels(const Tensor& labels, const std::vector<float>& of_labels) {
  const Tensor weights = zeros(labels.shape());
  for (int64_t i = 0; i < labels.size(); ++i)
    if (const int32_t label = labels.data_as<int32_t>()[i]; label >= 0)
      weights.data_as<float>()[i] = of_labels[static_cast<size_t>(label)];
  return weights;
}

}  // namespace

Tensor span_logits(const Tensor& logits, const std::vector<Interval>& valid) {
  const int64_t B = logits.dim(0), T = logits.dim(1);
  const Tensor places = empty({B * 2 * T}, DType::i32), padding = zeros({B * 2, T});
  for (int64_t i = 0; i < B * 2 * T; ++i) {
    const int64_t b = i / (2 * T), side = i / T % 2, t = i % T;
    places.data_as<int32_t>()[i] = static_cast<int32_t>((b * T + t) * 2 + side);
    if (t >= valid[static_cast<size_t>(b)].end) padding.data_as<float>()[i] = kNoToken;
  }
  const Tensor turned = gather(places, logits.view({B * T * 2, 1})).view({B * 2, T});
  return add(turned, cast(padding.to(logits.device()), logits.dtype()));
}

Tensor target_loss(const Tensor& logits, const Tensor& labels, const Batch& batch, double divisor) {
  if (!batch.contexts.empty()) {
    const auto& valid = batch.source.ids ? batch.source_valid : batch.target_valid;
    return cross_entropy(span_logits(logits, valid), labels.view({labels.size()}), divisor);
  }
  if (!batch.targets) {
    const Tensor log_p = log_probability(logits, labels);
    return sum_over(times_weights(log_p, weights_of_labels(labels, *batch.label_weights)),
                    -divisor);
  }
  const Tensor targets = cast(batch.targets.to(logits.device()), logits.dtype());
  if (batch.problem == model::ProblemType::regression) {
    const Tensor errors = subtract(logits, targets);
    return sum_over(multiply(errors, errors), divisor);
  }
  const Tensor log_p = log_sigmoid(multiply(logits, targets));
  return sum_over(times_weights(log_p, weights_of_sets(batch)),
                  -divisor * static_cast<double>(logits.dim(-1)));
}

}  // namespace fovea::train
