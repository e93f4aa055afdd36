#pragma once

#include <vector>

#include "fovea/plan.h"

namespace fovea {

// The number of tokens that each stack reads; 0 if there is no such stack.
struct Lengths {
  int64_t source = 0, target = 0;
  int64_t total() const { return source + target; }
};

// Returns the lengths; 0 is replaced by the model's own length. Throws InvalidArgument for a length
// above the model's context.
Lengths lengths_of(const Spec& validated, int64_t length, int64_t source_length);

// Returns the parts of a model, and the cost of one sequence in each. Norms, activations, softmax
// and embeddings take a few FLOPs per number, less than a hundredth of the products; they are not
// counted.
std::vector<Part> parts_of(const Spec& validated, const Lengths& lengths);

// Returns the FLOPs of the products of queries with keys and of weights with values.
double score_flops(const Spec& validated, const Lengths& lengths);

}  // namespace fovea
