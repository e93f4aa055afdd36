#pragma once

#include <vector>

#include "fovea/train/plan.h"
#include "optim/moments.h"

namespace fovea::train {

// The number of tokens that each stack reads; 0 if there is no such stack.
struct Lengths {
  int64_t source = 0, target = 0;
  int64_t total() const { return source + target; }
};

// Returns the lengths; a length of 0 is replaced by the model's maximum. Throws InvalidArgument if
// a length exceeds the maximum.
Lengths lengths_of(const model::Spec& validated, int64_t length, int64_t source_length);

// Returns the parts of a model, with the FLOPs of the matrix products for one sequence. The FLOPs
// of norms, activations, softmax and embeddings are few in comparison and not counted.
std::vector<PlanPart> parts_of(const model::Spec& validated, const Lengths& lengths);

// Returns the bytes of the moments of all parameters.
uint64_t moment_bytes(const model::Spec& validated, const MomentOptions& options);

// Returns the FLOPs of the products of queries with keys and of weights with values.
double score_flops(const model::Spec& validated, const Lengths& lengths);

}  // namespace fovea::train
