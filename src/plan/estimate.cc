#include "plan/estimate.h"

#include "model/transformer.h"

namespace fovea {
namespace {

double bytes_of(DType dtype) { return static_cast<double>(size_of(dtype)); }

}  // namespace

Cost training_cost(const Spec& s, int64_t batch, int64_t context, int64_t passes, DType compute) {
  const StackSpec& d = *s.decoder;
  const double tokens = static_cast<double>(batch * context), C = static_cast<double>(s.width);
  const double V = static_cast<double>(s.vocabulary), F = static_cast<double>(d.ffn.width);
  const double HD = static_cast<double>(d.attention.heads * d.attention.head_width);
  const double GD = static_cast<double>(d.attention.kv_heads * d.attention.head_width);
  const double layers = static_cast<double>(d.layers), e = bytes_of(compute);
  const double ffn_matrices = d.ffn.gated ? 3 : 2;

  Cost cost;
  Transformer model(s);
  cost.parameters = parameter_count(model);
  const double matrices = layers * (2 * C * HD + 2 * C * GD + ffn_matrices * C * F) + C * V;
  // Keys that a query sees, on average, under the causal mask.
  const double seen = static_cast<double>(context + 1) / 2;
  const double forward = tokens * (2 * matrices + layers * 4 * HD * seen);
  cost.flops_per_step = 3 * forward * static_cast<double>(passes);

  cost.weight_bytes = static_cast<uint64_t>(cost.parameters) * 8;
  cost.optimizer_bytes = static_cast<uint64_t>(cost.parameters) * 8;
  // Kept a layer and token: two places of the residual stream and their norms' statistics; query,
  // key, value; attention's result and its softmax's sum; the feed-forward's hidden layer before
  // and behind the activation. Norms are computed again.
  const double kept = 8 * C + 16 + e * (2 * HD + 2 * GD) +
                      4 * static_cast<double>(d.attention.heads) + e * F * (d.ffn.gated ? 4 : 2);
  // Comes and goes: the largest of the feed-forward's activation with its gradients, and the logits
  // with theirs.
  const double passing = std::max(3 * e * F + 12 * C, 8 * V);
  cost.activation_bytes = static_cast<uint64_t>(tokens * (layers * kept + 4 * C + passing));
  return cost;
}

}  // namespace fovea
