#pragma once

// Every op of ops.h with dimensions that are odd, prime, one, or larger than a kernel's tile.

#include <string>
#include <vector>

#include "ops/ops.h"
#include "support/gradient_check.h"

namespace fovea::test {

struct Case {
  std::string op;              // its name in ops.h
  std::string what;            // what else distinguishes the case, for messages
  std::vector<Tensor> inputs;  // f64, with values that bf16 represents exactly
  Function function;           // works in the dtype of its inputs
  bool differentiable = true;
};

std::vector<Case> cases();
void add_position_cases(std::vector<Case>& all);  // rotations, windows, concatenation
void add_attention_cases(std::vector<Case>& all);
void add_expert_cases(std::vector<Case>& all);

// Returns normally distributed numbers that are exact in bf16.
Tensor rounded(Shape shape, uint64_t seed, double deviation = 1);
Tensor integers(const std::vector<int32_t>& values, Shape shape);

}  // namespace fovea::test
