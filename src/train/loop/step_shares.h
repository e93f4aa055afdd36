#pragma once

// How the processes (ranks) of a job share the units of a step.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fovea::train {

// The units of a forward pass, and the cost of one of them.
struct PassUnits {
  int64_t count = 1;
  double cost = 1;
};

// Consecutive units of one pass.
struct UnitRange {
  size_t pass = 0;
  int64_t begin = 0, end = 0;
  int64_t last = 0;  // index of the last unit in the tree of the step
};

// Units whose gradients form a complete node of the tree of the step (kernels/sum_tree.h): a part
// of a pass, or several passes.
struct StepNode {
  std::vector<UnitRange> ranges;
  int64_t last = 0;  // the largest index that the node includes
};

// Returns the nodes of each rank, which hold all units of the step in ascending order. The gradient
// of a step is the sum of those of its nodes, and has the same bits for every number of ranks. A
// rank has one node if that makes the largest share at most an eighth larger, since each node of a
// rank is a gradient to send.
std::vector<std::vector<StepNode>> share_step(const std::vector<PassUnits>& passes, int ranks);

}  // namespace fovea::train
