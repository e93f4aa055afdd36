#include "plan/estimate.h"

#include "plan/memory.h"

namespace fovea {

Cost training_cost(const Spec& s, int64_t batch, int64_t context, int64_t passes, DType compute) {
  const bool two_texts = s.encoder && s.decoder && s.input.kind == InputKind::tokens;
  const Lengths lengths = lengths_of(s, context, two_texts ? context : 0);  // of about one length
  Cost cost;
  double forward = 0;
  for (const Part& part : parts_of(s, lengths)) {
    cost.parameters += part.parameters;
    forward += part.flops;
  }
  cost.flops_per_step = 3 * forward * static_cast<double>(batch * passes);
  cost.weight_bytes = static_cast<uint64_t>(cost.parameters) * 8;
  cost.optimizer_bytes = static_cast<uint64_t>(cost.parameters) * 8;
  cost.activation_bytes = static_cast<uint64_t>(
      activation_bytes(s, lengths, batch, static_cast<double>(size_of(compute))));
  return cost;
}

}  // namespace fovea
