#include <algorithm>
#include <cstring>
#include <limits>

#include "nn/pass.h"

namespace fovea::model {
namespace {

// The softmax of scores; 0 for queries that see no key.   [B, H, T, S] -> [B, H, T, S]
Tensor weights_of(const Tensor& scores) {
  const Tensor weights = softmax(scores);
  const int64_t S = scores.dim(3), R = scores.size() / S;
  const std::vector<float> values = to_floats(scores);
  for (int64_t r = 0; r < R; ++r) {
    const auto row = values.begin() + r * S;
    if (*std::max_element(row, row + S) == -std::numeric_limits<float>::infinity())
      std::memset(weights.view({R, S}).rows(r, r + 1).data(), 0, weights.bytes() / size_t(R));
  }
  return weights;
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
    if (replaced(probe, point, scores)) used = weights_of(scores);
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
