#include "plan/estimate.h"

#include <algorithm>

#include "kernels/kernels.h"
#include "kernels/sum_tree.h"
#include "plan/memory.h"
#include "transformer/transformer.h"

namespace fovea::train {
namespace {

// Returns the number of uses of the token embedding after the first: by another stack, and by the
// head.
int64_t further_uses(const model::Spec& s) {
  const bool source =
      s.encoder && s.input.kind == model::InputKind::tokens && s.source_vocabulary == 0;
  return std::max(0, int{source} + int{s.decoder.has_value()} + int{s.head.tied} - 1);
}

int64_t summed_passes(int64_t passes, const Savings& savings) {
  return savings.summed_passes > 0 ? savings.summed_passes : passes;
}

// Returns the bytes of gradients. Those of one pass are summed in place; those of several passes
// may be summed by a tree, which keeps several partial sums for each use of a parameter, and the
// gradient that a pass computes, of which that of the token embedding is usually the largest.
uint64_t gradient_bytes(const model::Spec& s, int64_t parameters, int64_t passes,
                        const Savings& savings) {
  const int64_t embedding = s.vocabulary * model::embedding_width_of(s);
  const int64_t summed = summed_passes(passes, savings);
  const int64_t numbers =
      summed == 1 ? parameters
                  : (parameters + embedding * further_uses(s)) * SumTree::slots_if_merged(summed) +
                        embedding;
  return static_cast<uint64_t>(numbers) * sizeof(float);
}

}  // namespace

int64_t recomputed_layers(const model::Spec& s, int64_t recompute) {
  int64_t layers = 0;
  for (const auto* stack : {&s.encoder, &s.decoder})
    if (*stack) layers += recompute < 0 ? (*stack)->layers : std::min(recompute, (*stack)->layers);
  return layers;
}

Cost training_cost(const model::Spec& s, int64_t batch, int64_t context, int64_t passes,
                   DType compute, const Savings& savings) {
  const bool two_texts = s.encoder && s.decoder && s.input.kind == model::InputKind::tokens;
  // The source and the target of a text pair have similar lengths.
  const Lengths lengths = lengths_of(s, context, two_texts ? context : 0);
  Cost cost;
  double forward = 0;
  for (const PlanPart& part : parts_of(s, lengths)) {
    cost.parameters += part.parameters;
    forward += part.flops;
  }
  cost.trained = cost.parameters;
  cost.tokens = batch * lengths.total();
  cost.flops_per_step = 3 * forward * static_cast<double>(batch * passes);
  cost.weight_bytes = static_cast<uint64_t>(cost.parameters) * sizeof(float) +
                      gradient_bytes(s, cost.parameters, passes, savings);
  cost.optimizer_bytes = moment_bytes(s, savings.moments);
  cost.activation_bytes = static_cast<uint64_t>(
      activation_bytes(s, lengths, batch, static_cast<double>(size_of(compute)), savings));
  return cost;
}

Cost cost_of_part(Cost cost, const TrainedSizes& sizes, int64_t passes, DType compute,
                  const Savings& savings) {
  cost.parameters = sizes.parameters;
  cost.trained = sizes.trained;
  cost.weight_bytes =
      sizes.frozen_bytes +
      static_cast<uint64_t>(sizes.trained *
                            (1 + SumTree::slots_if_merged(summed_passes(passes, savings)))) *
          sizeof(float);
  cost.optimizer_bytes = sizes.moment_bytes;
  cost.activation_bytes += static_cast<uint64_t>(sizes.kept * cost.tokens) * size_of(compute);
  const double share = static_cast<double>(sizes.trained) / static_cast<double>(sizes.parameters);
  cost.flops_per_step *= (2 + share) / 3;
  return cost;
}

}  // namespace fovea::train
