#pragma once

// Sums over ranks of numbers that are sent in bf16: half the bytes of parallel/tree_reduce.h. The
// bits depend on the number of ranks, and are the same on all of them.

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/communicator.h"
#include "tensor/tensor.h"

namespace fovea::train {

// One sum that is computed again and again, such as that of the gradients of some parameters.
// What rounding removes is added the next time (error feedback; Seide et al. 2014, section 3).
class RoundedReduction {
 public:
  explicit RoundedReduction(Communicator& ranks) : ranks_(ranks) {}

  // Collective. `counts`: the elements that each rank adds, in their order; all together are those
  // of `own`, f32 [size], which is overwritten. Returns this rank's part of the sum, f32, not
  // rounded.
  Tensor scatter(Tensor own, std::span<const int64_t> counts);
  // Collective. Returns the sum over all ranks, f32 [size], rounded again.
  Tensor operator()(Tensor own);

 private:
  Communicator& ranks_;
  Tensor sent_errors_, total_errors_;  // f32; empty = 0
};

}  // namespace fovea::train
