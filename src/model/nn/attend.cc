#include <algorithm>
#include <limits>
#include <numeric>

#include "base/math.h"
#include "nn/pass.h"

namespace fovea::model {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// The softmax of scores and of the sinks [H], which may be empty; 0 for queries that see no key.
// [B, H, T, S] -> [B, H, T, S]
Tensor weights_of(const Tensor& scores, const Tensor& sinks) {
  const int64_t S = scores.dim(3), R = scores.size() / S;
  const std::vector<float> values = to_floats(scores);
  const std::vector<float> of_heads = sinks ? to_floats(sinks) : std::vector<float>();
  std::vector<float> weights(values.size());
  for (int64_t r = 0; r < R; ++r) {
    const auto head = static_cast<size_t>(r / scores.dim(2) % scores.dim(1));
    const double sink = sinks ? of_heads[head] : kHidden;
    const auto row = values.begin() + r * S;
    const double largest = std::max<double>(sink, *std::max_element(row, row + S));
    if (largest == kHidden) continue;
    const auto share = [&](double score) {
      return score == kHidden ? 0 : math::exp(score - largest);
    };
    const double sum = std::accumulate(row, row + S, share(sink),
                                       [&](double all, float score) { return all + share(score); });
    std::transform(row, row + S, weights.begin() + r * S,
                   [&](float score) { return static_cast<float>(share(score) / sum); });
  }
  return convert(tensor_of(weights, scores.shape()), scores.dtype());
}

// Passes a value to the probe. Returns whether the probe replaced it.
bool replaced(const Probe& probe, const ProbePoint& point, Tensor& value) {
  const void* const before = value.data();
  probe.see(point, value);
  return value.data() != before;
}

// Shows the scores and the weights to the probe. Returns the weights to use if it replaced either
// of them, else an empty tensor.   -> [B, H, T, S]
Tensor replaced_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options,
                        const Probe& probe, ProbePoint point) {
  const auto wants = [&](ProbePoint::What what) {
    point.what = what;
    return probe.wants_weights && probe.wants_weights(point);
  };
  Tensor used;
  if (wants(ProbePoint::What::scores)) {
    Tensor scores = attention_scores(q, k, options);
    if (replaced(probe, point, scores)) used = weights_of(scores, options.sinks);
  }
  if (wants(ProbePoint::What::attention)) {
    Tensor weights = used ? used : attention_weights(q, k, options);
    if (replaced(probe, point, weights)) used = weights;
  }
  return used;
}

}  // namespace

Tensor scaled_heads(const Tensor& heads, const Tensor& factors) {
  if (!factors) return heads;
  const Shape shape = heads.shape();
  return scale_columns(heads.view({shape[0], shape[1], factors.size()}), factors).view(shape);
}

Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
              const Pass& pass, int64_t layer, ProbePoint::Stack stack) {
  if (pass.probe == nullptr) return attention(q, k, v, options);
  const ProbePoint point{ProbePoint::What::attention, layer, stack};
  const Tensor weights = replaced_weights(q, k, options, *pass.probe, point);
  const Tensor heads = weights ? weighted_values(weights, v) : attention(q, k, v, options);
  if (pass.probe->attend) pass.probe->attend(point, {q, k, v, options, heads});
  return heads;
}

}  // namespace fovea::model
