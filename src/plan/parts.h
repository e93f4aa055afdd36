#pragma once

#include <vector>

#include "fovea/plan.h"

namespace fovea {

// How many tokens each stack reads; 0 where there is no such stack.
struct Lengths {
  int64_t source = 0, target = 0;
  int64_t total() const { return source + target; }
};

// The model's own where the options say 0; InvalidArgument beyond what it reads.
Lengths lengths_of(const Spec& validated, int64_t length, int64_t source_length);

// The parts of a model, and what one sequence costs in each. Norms, activations, softmax and
// embeddings cost a FLOP or a few a number, less than a hundredth of the products: not counted.
std::vector<Part> parts_of(const Spec& validated, const Lengths& lengths);

// FLOPs of the products of queries with keys and of weights with values.
double score_flops(const Spec& validated, const Lengths& lengths);

}  // namespace fovea
